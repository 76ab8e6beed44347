"""One connection to a console: bytes as the machine prints them."""

from __future__ import annotations

from typing import Protocol


class ConsoleStream(Protocol):
    """An open connection. Opening one raises InfrastructureError, RequestError or OSError."""

    def read(self, timeout: float) -> bytes | None:
        """Wait at most so many seconds; return bytes, b"" when the connection has ended, None for silence."""
        ...

    def close(self) -> None:
        """End the connection and all that belongs to it. Never raises."""
        ...
