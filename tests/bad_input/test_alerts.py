"""Wrong requests for alerts: refused in words, and no alert is changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.store.alerts.sql_alerts import SqlAlerts
from bisector.adapters.store.open_database import open_state_file
from bisector.model.alerts import HistoryEntry
from tests.bad_input.harness import Row, check_row, each_row
from tests.support.series.alert_lab import found

OPEN, CLOSED = "aaaa000000", "aaab000000"


def with_alerts(place: Path) -> None:
    """Add a suspect, and a duplicate of it."""
    alerts = SqlAlerts(open_state_file(place / "state" / "perfbisect.sqlite"))
    entry = HistoryEntry("perfbisect", "suspect", "")
    alerts.add(found(1, 2, id=OPEN), entry)
    alerts.add(found(2, 3, id=CLOSED, triage="duplicate", duplicate_of=OPEN), entry)


def row(name: str, line: str, *says: str, last: str | None = None) -> Row:
    return Row(name, ["alert", *line.split(), *([] if last is None else [last])], says, setup=with_alerts)


ROWS = [
    row(
        "unknown", "show aaaa000001", "there is no alert 'aaaa000001'", f"did you mean '{OPEN}'", "alert list"
    ),
    row("unknown-to-set", "set bbbb --note x", "there is no alert 'bbbb'", "alert list"),
    row("several", "show aaa", "'aaa' is the beginning of several alerts", OPEN, CLOSED, "more of the id"),
    row("nothing", f"set {OPEN}", "nothing is said that should change", "--state, --assign, --note"),
    row("finding", f"set {OPEN} --state confirmed", "'confirmed'", "acknowledged"),
    row("state", f"set {OPEN} --state wontfx", "'wontfx'", "wontfix"),
    row("fixed", f"set {OPEN} --state fixed", "cannot be 'fixed'", "never confirmed", f"alert show {OPEN}"),
    row("duplicate", f"set {OPEN} --state duplicate", "of which alert", "--duplicate-of ID"),
    row("both", f"set {OPEN} --state invalid --duplicate-of {CLOSED}", "not 'invalid' as well", "not both"),
    row("itself", f"set {OPEN} --duplicate-of {OPEN}", "cannot be a duplicate of itself", "name another"),
    row("circle", f"set {OPEN} --duplicate-of {CLOSED}", "itself a duplicate", f"--duplicate-of {OPEN}"),
    row("no-such", f"set {OPEN} --duplicate-of bbbb", "there is no alert 'bbbb'"),
    row("two-names", f"set {OPEN} --assign ann --unassign", "exclude each other", "one of them"),
    row("blank", f"set {OPEN} --assign", "the name is empty", "--unassign", last="  "),
    row("blank-note", f"set {OPEN} --state invalid --note", "the note is empty", "leave it out", last="  "),
    row("long-name", f"set {OPEN} --assign", "201 characters", "at most 200", last="x" * 201),
    row("long-note", f"set {OPEN} --note", "2,001 characters", "at most 2,000", last="x" * 2001),
    row(
        "list-state", "list --state culprt", "'culprt' is not a state", "did you mean 'culprit'", "not found"
    ),
    row("list-after", "list --after bbbb", "there is no alert 'bbbb'"),
    row("limit", "list --limit 0", "--limit", "from 1 to 1,000,000"),
]


@each_row(ROWS)
def test_what_is_refused(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_row(row, place, capsys, monkeypatch)
