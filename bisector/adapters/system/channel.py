"""A conversation in lines with a program, wherever it runs; what SSH and local processes have in common."""

from __future__ import annotations

from typing import Protocol

from bisector.errors import InfrastructureError


class LineClosed(InfrastructureError):
    """The other side is gone; `details` holds what it said last on standard error."""


class LineSilent(InfrastructureError):
    """Nothing came within the time given; the other side may still be there."""


class Line(Protocol):
    """Text lines in both directions."""

    def send(self, text: str) -> None:
        """Send one line (without its newline). Raises LineClosed."""
        ...

    def receive(self, timeout: float) -> str:
        """Return the next line without its newline. Raises LineSilent after `timeout` seconds, LineClosed."""
        ...

    def close(self) -> None:
        """End the conversation and the program. Never raises."""
        ...
