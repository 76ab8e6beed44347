"""The operations on nightly series at a server; `remote_operations` has all others."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from bisector.app.operations.operations import Values

if TYPE_CHECKING:
    from bisector.adapters.http.server_connection import ServerConnection


class SeriesAtServer:
    """What `series` asks for."""

    _server: ServerConnection

    def series_list(self) -> list[Values]:
        """Return the rows of `series list`."""
        found: list[Values] = self._server.ask("GET", "/series")
        return found

    def series(self, name: str) -> Values:
        """Return what `series show` prints."""
        return self._of_series("GET", name)

    def add_named_series(self, asked: Values) -> Values:
        """Add a series, or only say what it would be (`series_request`)."""
        found: Values = self._server.ask("POST", "/series", body=asked)
        return found

    def run_night(self, name: str) -> Values:
        """Make a night of a series due now."""
        return self._of_series("POST", name, "nights", {})

    def backfill(self, name: str, since: str | None, every: int) -> list[Values]:
        """Make nights of older commits due; return them, the oldest commit first."""
        body = {"since": since, "every": every}
        found: list[Values] = self._server.ask("POST", f"{_path(name)}/backfill", body=body)
        return found

    def pause_series(self, name: str, reason: str) -> Values:
        """Let a series rest."""
        return self._of_series("POST", name, "pause", {"reason": reason})

    def resume_series(self, name: str) -> Values:
        """Let a series go on."""
        return self._of_series("POST", name, "resume", {})

    def remove_series(self, name: str) -> Values:
        """Forget a series."""
        return self._of_series("DELETE", name)

    def _of_series(self, method: str, name: str, below: str = "", body: object = None) -> Values:
        path = f"{_path(name)}/{below}" if below else _path(name)
        found: Values = self._server.ask(method, path, body=body)
        return found


def _path(name: str) -> str:
    return f"/series/{quote(name, safe='')}"
