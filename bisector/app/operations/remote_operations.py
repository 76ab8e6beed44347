"""The operations at a server (`perfbisect web`), over its REST interface."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from bisector.adapters.http.server_connection import ServerAway, ServerConnection, error_of
from bisector.adapters.system.bearer_token import read_token
from bisector.app.operations.operations import MAX_REMOVED, Said, Values
from bisector.app.operations.remote_outbox import OutboxAtServer
from bisector.app.operations.remote_series import SeriesAtServer
from bisector.engine.events import Event
from bisector.ports import Progress

if TYPE_CHECKING:
    from bisector.app.alerts.alert_changes import AlertChange
    from bisector.app.watching.watch_bisection import Watching
    from bisector.linux.profile import Profile
    from bisector.model.alerts import AlertFilter
    from bisector.model.leases import TestbedState
    from bisector.stats.samples import SampleSet

LATEST = "latest"
"""In an address: the bisection that began last."""
FILES_HEADER = "Perfbisect-Files"
"""Of an archive: how many files of the bisection are in it."""
_PAUSES = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 30.0, 30.0)
"""Seconds between tries to watch again where a connection broke: a restarted server is back sooner."""
_FIELDS = frozenset(field.name for field in fields(Event))


def connect(url: str, token_file: Path | None, note: Progress) -> RemoteOperations:
    """Return the operations at a server, with the user's token. Raises RequestError: there is none."""
    token = read_token(token_file, missing="there is no token for the server", role="")
    return RemoteOperations(ServerConnection(url, token, note), note)


class RemoteOperations(SeriesAtServer, OutboxAtServer):
    """operations.Operations, asked of a server."""

    def __init__(self, server: ServerConnection, note: Progress) -> None:
        """note: called when the server is away while a bisection is watched."""
        self._server, self._note = server, note

    def bisections(self, limit: int | None) -> list[Values]:
        """Return the rows of `list`."""
        found: list[Values] = self._server.ask("GET", "/bisections", limit=limit)
        return found

    def status(self, identity: str | None) -> Values:
        """Return what `status` prints."""
        return self._values("GET", _path(identity))

    def trials(self, identity: str | None) -> list[Values]:
        """Return every trial."""
        found: list[Values] = self._server.ask("GET", _path(identity, "trials"))
        return found

    def drawing(self, identity: str | None, width: int) -> Values:
        """Return the lines of 'pictures' and of 'trials'."""
        return self._values("GET", _path(identity, "drawing"), width=width)

    def samples(self, identity: str | None, rev: str) -> list[SampleSet]:
        """Return the samples of a commit."""
        from bisector.app.operations.measurement_values import samples_from

        return samples_from(self._server.ask("GET", _path(identity, "samples"), rev=rev))

    def recording(self, identity: str | None, rev: str) -> Profile:
        """Return what a monitor recorded of a commit."""
        from bisector.app.operations.measurement_values import profile_from

        return profile_from(self._values("GET", _path(identity, "profile"), rev=rev))

    def commit(self, identity: str | None, rev: str) -> Values:
        """Return what is known of one commit."""
        return self._values("GET", _path(identity, "commit"), rev=rev)

    def report(self, identity: str | None) -> Values:
        """Return the report."""
        return self._values("GET", _path(identity, "report"))

    def report_text(self, identity: str | None, *, short: bool = False) -> str:
        """Return the report as text."""
        return self._server.text(_path(identity, "report.txt"), short=short)

    def report_page(self, identity: str | None) -> str:
        """Return the report as an HTML page."""
        return self._server.text(_path(identity, "report.html"))

    def log(self, identity: str | None) -> Values:
        """Return the steps."""
        return self._values("GET", _path(identity, "log"))

    def log_text(self, identity: str | None) -> str:
        """Return them as `git bisect replay` reads them."""
        return self._server.text(_path(identity, "log.txt"))

    def queue(self) -> Values:
        """Return who executes, and the rows of `queue`."""
        return self._values("GET", "/queue")

    def testbeds(self) -> Values:
        """Return the rows of `testbed list`."""
        return self._values("GET", "/testbeds")

    def set_testbed(self, name: str, state: TestbedState, reason: str) -> Values:
        """Take a testbed out of use, or let it be used again."""
        return self._values("POST", _testbed(name, "state"), body={"state": state, "reason": reason})

    def reserve_testbed(self, name: str, hours: float, wait: float) -> Values:
        """Keep a testbed for oneself."""
        return self._values("POST", _testbed(name, "reservations"), body={"hours": hours, "wait": wait})

    def alerts(self, wanted: AlertFilter, *, after: str, limit: int | None) -> Values:
        """Return the rows of `alert list`, and how many there are."""
        return self._values(
            "GET",
            "/alerts",
            series=wanted.series or None,
            workload=wanted.workload or None,
            state=",".join(wanted.states) or None,
            open=wanted.open,
            after=after or None,
            limit=limit,
        )

    def alert(self, identity: str) -> Values:
        """Return what `alert show` prints."""
        return self._values("GET", f"/alerts/{quote(identity, safe='')}")

    def set_alert(self, identity: str, change: AlertChange) -> Values:
        """Change an alert."""
        return self._values("POST", f"/alerts/{quote(identity, safe='')}", body=asdict(change))

    def remove(self, identities: Sequence[str], *, dry_run: bool) -> Values:
        """Remove bisections that have ended; more than one request can name are removed part by part."""
        parts = [identities[n : n + MAX_REMOVED] for n in range(0, len(identities), MAX_REMOVED)]
        if len(parts) > 1 and not dry_run:
            self.remove(identities, dry_run=True)  # all can be, or none is
        made = [
            self._values("POST", "/removals", body={"ids": list(part), "dry_run": dry_run}) for part in parts
        ]
        items = {item["name"]: item for one in made for item in one["items"]}
        return {"items": [*items.values()], "freed_bytes": sum(one["freed_bytes"] for one in made)}

    def watch(self, identity: str | None, observer: Watching) -> str:
        """Report what happens to a bisection until it ends; return its id. Waits for an absent server."""
        name = str(self.status(identity)["id"])
        labels: dict[int, str] = {}
        tries = 0
        with observer.progress(lambda index: labels.get(index, f"commit {index}"), None) as on_event:
            while True:
                try:
                    with self._server.stream(_path(name, "events")) as stream:
                        for kind, data in stream:
                            tries = 0
                            if kind == "end":
                                return name
                            if kind == "problem":
                                raise error_of(data)
                            if data.get("commit") is not None:
                                labels[int(data["commit"])] = str(data.get("label"))
                            on_event(_event(data))
                    raise ServerAway("the server ended the stream")
                except ServerAway as error:
                    if tries == len(_PAUSES):
                        raise
                    self._note(f"{error.message}; trying again")
                    time.sleep(_PAUSES[tries])
                    tries += 1

    def start(self, asked: Values) -> Values:
        """Queue what is asked for (`remote_request`)."""
        return self._values("POST", "/bisections", body=asked)

    def plan(self, asked: Values) -> Values:
        """Return what `start` would do with what is asked for (`remote_request`)."""
        return self._values("POST", "/plans", body=asked)

    def try_commit(self, identity: str | None, rev: str, max_hours: float | None, *, dry_run: bool) -> Values:
        """Queue a comparison of a commit with a culprit, or only say what it would be."""
        body = {"rev": rev, "max_hours": max_hours, "dry_run": dry_run}
        return self._values("POST", _path(identity, "tries"), body=body)

    def export(self, identity: str | None, to: Path | None) -> Values:
        """Write the archive of a bisection to a file."""
        from bisector.app import transfer

        name = str(self.status(identity)["id"])
        path = to or transfer.default_archive(name)
        with transfer.archive_to(path) as partial:
            headers = self._server.download(_path(name, "archive"), partial)
        return transfer.exported_values(name, path, int(headers.get(FILES_HEADER, 0)))

    def import_(self, archive: Path) -> Values:
        """Add a bisection from an archive."""
        from bisector.app import transfer

        transfer.require_archive(archive)
        found: Values = self._server.upload("/imports", archive)
        return found

    def set_priority(self, identity: str, priority: int, reason: str) -> Values:
        """Serve a bisection before or after others."""
        body = {"priority": priority, "reason": reason}
        return self._values("POST", _path(identity, "priority"), body=body)

    def resume(self, identity: str | None, reason: str) -> Values:
        """Queue a bisection that rests."""
        return self._values("POST", _path(identity, "resume"), body={"reason": reason})

    def pause(self, identity: str | None, reason: str) -> Values:
        """Let a bisection rest."""
        return self._values("POST", _path(identity, "pause"), body={"reason": reason})

    def cancel(self, identity: str | None, reason: str) -> Values:
        """End a bisection for good."""
        return self._values("POST", _path(identity, "cancel"), body={"reason": reason})

    def mark(self, identity: str, rev: str, verdict: Said, note: str) -> Values:
        """Set the verdict of a commit, in the user's terms."""
        body = {"rev": rev, "verdict": verdict, "note": note}
        return self._values("POST", _path(identity, "marks"), body=body)

    def discard(self, identity: str, kind: Literal["boot", "testbed"], name: str, note: str) -> Values:
        """Discard the samples of a boot or a testbed."""
        body = {"kind": kind, "name": name, "note": note}
        return self._values("POST", _path(identity, "discards"), body=body)

    def _values(
        self, method: str, path: str, body: object = None, **parameters: str | int | bool | None
    ) -> Values:
        found: Values = self._server.ask(method, path, body=body, **parameters)
        return found


def _path(identity: str | None, *below: str) -> str:
    return "/".join(("/bisections", quote(identity or LATEST, safe=""), *below))


def _testbed(name: str, below: str) -> str:
    return f"/testbeds/{quote(name, safe='')}/{below}"


def _event(data: dict[str, Any]) -> Event:
    values = {name: value for name, value in data.items() if name in _FIELDS}
    values["suspects"] = tuple(map(tuple, values.get("suspects", ())))
    return Event(**values)
