"""The operations that commands and the web interface share. Their values have the keys of docs/json.md.

`LocalOperations` carries them out on the database, also for the server. `RemoteOperations` asks a server. A
command that uses them therefore prints the same wherever it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from bisector.app.alerts.alert_changes import AlertChange
    from bisector.app.watching.watch_bisection import Watching
    from bisector.linux.profile import Profile
    from bisector.model.alerts import AlertFilter
    from bisector.model.leases import TestbedState
    from bisector.stats.samples import SampleSet

Values = dict[str, Any]
"""JSON values."""
MAX_REMOVED = 100
"""Bisections in one request for their removal; a client sends several."""
Said = Literal["good", "bad", "skip", "old", "new"]
"""A verdict in the user's terms."""


class Operations(Protocol):
    """An identity is a bisection's id, or its beginning; None is the latest. All raise RequestError."""

    def bisections(self, limit: int | None) -> list[Values]:
        """Return the rows of `list`, the latest first."""
        ...

    def status(self, identity: str | None) -> Values:
        """Return what `status` prints."""
        ...

    def trials(self, identity: str | None) -> list[Values]:
        """Return every trial, as `show` prints them with --json."""
        ...

    def drawing(self, identity: str | None, width: int) -> Values:
        """Return what `show` prints: lines of 'pictures', so wide at most, and of 'trials'."""
        ...

    def samples(self, identity: str | None, rev: str) -> list[SampleSet]:
        """Return the samples of a commit, one set a testbed."""
        ...

    def recording(self, identity: str | None, rev: str) -> Profile:
        """Return what a monitor recorded of a commit."""
        ...

    def export(self, identity: str | None, to: Path | None) -> Values:
        """Write the archive of a bisection to a file, by default ID.tar.gz in the current folder."""
        ...

    def import_(self, archive: Path) -> Values:
        """Add a bisection from an archive."""
        ...

    def commit(self, identity: str | None, rev: str) -> Values:
        """Return what is known of one commit."""
        ...

    def report(self, identity: str | None) -> Values:
        """Return the report of a bisection, finished or not."""
        ...

    def report_text(self, identity: str | None, *, short: bool = False) -> str:
        """Return the report as text. short: how a bisection ended, as `start` and `watch` print it."""
        ...

    def report_page(self, identity: str | None) -> str:
        """Return the report as one self-contained HTML page."""
        ...

    def log(self, identity: str | None) -> Values:
        """Return the steps of a bisection."""
        ...

    def log_text(self, identity: str | None) -> str:
        """Return them as `git bisect replay` reads them."""
        ...

    def queue(self) -> Values:
        """Return who executes, and the rows of `queue`."""
        ...

    def testbeds(self) -> Values:
        """Return the rows of `testbed list` ('testbeds'), and the database's time ('now')."""
        ...

    def set_testbed(self, name: str, state: TestbedState, reason: str) -> Values:
        """Take a testbed out of use, or let it be used again ('good')."""
        ...

    def reserve_testbed(self, name: str, hours: float, wait: float) -> Values:
        """Keep a testbed for oneself. wait: hours until then."""
        ...

    def alerts(self, wanted: AlertFilter, *, after: str, limit: int | None) -> Values:
        """Return the rows of `alert list` ('alerts'), and how many there are ('count').

        after: the id of the last row of the page before; '' for the first page.
        """
        ...

    def alert(self, identity: str) -> Values:
        """Return what `alert show` prints. identity: an alert's id, or its beginning."""
        ...

    def set_alert(self, identity: str, change: AlertChange) -> Values:
        """Change an alert; return its row."""
        ...

    def series_list(self) -> list[Values]:
        """Return the rows of `series list`."""
        ...

    def series(self, name: str) -> Values:
        """Return what `series show` prints."""
        ...

    def run_night(self, name: str) -> Values:
        """Make a night of a series due now; return its 'number'."""
        ...

    def backfill(self, name: str, since: str | None, every: int) -> list[Values]:
        """Make nights of older commits due; return them ('number', 'commit'), the oldest commit first."""
        ...

    def pause_series(self, name: str, reason: str) -> Values:
        """Let a series rest; return its 'state'."""
        ...

    def resume_series(self, name: str) -> Values:
        """Let a series go on; return its 'state'."""
        ...

    def remove_series(self, name: str) -> Values:
        """Forget a series; return how many bisections were 'cancelled'."""
        ...

    def messages(self, limit: int | None) -> list[Values]:
        """Return the rows of `mail list`, the latest first."""
        ...

    def message(self, number: int) -> Values:
        """Return a message with its 'text' as it would go out."""
        ...

    def approve_message(self, number: int) -> Values:
        """Let a message be sent; return its row."""
        ...

    def stop_message(self, number: int, reason: str) -> Values:
        """Let a message be sent no more; return its row."""
        ...

    def remove(self, identities: Sequence[str], *, dry_run: bool) -> Values:
        """Remove bisections that have ended, all or none; dry_run: only say which."""
        ...

    def watch(self, identity: str | None, observer: Watching) -> str:
        """Report what happens to a bisection until it ends; return its id.

        Raises InfrastructureError where it stops without a conclusion.
        """
        ...

    def set_priority(self, identity: str, priority: int, reason: str) -> Values:
        """Serve a bisection before or after others."""
        ...

    def resume(self, identity: str | None, reason: str) -> Values:
        """Queue a bisection that rests, by default the latest, for whoever executes bisections there."""
        ...

    def pause(self, identity: str | None, reason: str) -> Values:
        """Let a bisection rest."""
        ...

    def cancel(self, identity: str | None, reason: str) -> Values:
        """End a bisection for good."""
        ...

    def mark(self, identity: str, rev: str, verdict: Said, note: str) -> Values:
        """Set the verdict of a commit, in the user's terms."""
        ...

    def discard(self, identity: str, kind: Literal["boot", "testbed"], name: str, note: str) -> Values:
        """Discard the samples of a boot or a testbed."""
        ...
