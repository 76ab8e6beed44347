"""The operations on the outbox at a server; `remote_operations` has all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bisector.app.operations.operations import Values

if TYPE_CHECKING:
    from bisector.adapters.http.server_connection import ServerConnection


class OutboxAtServer:
    """What `mail` asks for."""

    _server: ServerConnection

    def messages(self, limit: int | None) -> list[Values]:
        """Return the rows of `mail list`, the latest first."""
        found: list[Values] = self._server.ask("GET", "/outbox", limit=limit)
        return found

    def message(self, number: int) -> Values:
        """Return a message with its text."""
        return self._of_message("GET", str(number))

    def approve_message(self, number: int) -> Values:
        """Approve a message for sending."""
        return self._of_message("POST", f"{number}/approve")

    def stop_message(self, number: int, reason: str) -> Values:
        """Stop a message: it is not sent any more."""
        return self._of_message("POST", f"{number}/stop", {"reason": reason})

    def _of_message(self, method: str, path: str, body: object = None) -> Values:
        found: Values = self._server.ask(method, f"/outbox/{path}", body=body)
        return found
