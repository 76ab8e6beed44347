"""Alerts of nightly series: a level that moved between two commits, what became of that, and who may say so.

An alert has two words. `finding` is what the program found out so far: a suspect is confirmed by fresh boots,
then bisected. `triage` is what people decided, empty until they do. Its state is their word where there is
one, else the program's. Times are seconds since the epoch by the database's clock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from bisector.model.decisions import Interval

Finding = Literal["suspect", "confirmed", "rejected", "undecided", "bisecting", "culprit", "not found"]
"""suspect: nights moved; confirmed, rejected, undecided: what fresh boots say; bisecting: the bisection goes
on; culprit, not found: how it ended."""
Triage = Literal["acknowledged", "invalid", "infrastructure", "fixed", "wontfix", "duplicate"]
"""acknowledged: somebody looks after it; all others close it. infrastructure: it was not the kernel."""
State = Finding | Triage
Direction = Literal["regression", "improvement"]
Actor = Literal["person", "program"]

FINDINGS: tuple[Finding, ...] = get_args(Finding)
TRIAGES: tuple[Triage, ...] = get_args(Triage)
STATES: tuple[State, ...] = (*FINDINGS, *TRIAGES)

BY_PROGRAM = "perfbisect"
"""Who changed an alert, where no person did."""

MAX_NOTE_CHARACTERS = 2000
"""Of a note or reason: a screen of text; what is longer belongs in a bug tracker, with its address here."""
MAX_NAME_CHARACTERS = 200
"""Of an assignee and of a commit's subject: an address with a name; a line."""
MAX_ENTRIES = 1000
"""Of one alert's history, after which people's changes are refused: who looks after it writes some ten."""

_ID_CHARACTERS = 10
"""Of an id, hexadecimal: two of 5,000 alerts have the same one with a probability of 1e-5."""

_FOLLOWS: Mapping[Finding, tuple[Finding, ...]] = {
    "suspect": ("confirmed", "rejected", "undecided"),
    "undecided": ("suspect",),  # a later night shows it again
    "confirmed": ("bisecting", "culprit", "not found"),
    "bisecting": (
        "culprit",
        "not found",
        "confirmed",
    ),  # confirmed: what it shared found another one's culprit
}
"""What the program finds out next; findings that are missing here are final."""
_NOTHING: tuple[Finding, ...] = ("rejected", "undecided")
CONFIRMED: tuple[Finding, ...] = ("confirmed", "bisecting", "culprit", "not found")
"""Findings of alerts that fresh boots have shown."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert. last_good, first_bad: full ids of the commits between which the level moved.

    repo: of the series. effect: change of the metric, relative (0.35 = the number rises by 35%) or, where
    there is one, in `unit`. tip: what fresh boots compared with last_good, '' before. why: the program's
    reason for its finding, or for what it waits for. group: the id of the first of those that share their
    cause. bisection, culprits: ids, empty while there are none; subject: of the first culprit. back_since:
    the commit since which the old level is back at the latest. duplicate_of: another alert. revision: counts
    changes, so that nobody overwrites what another has changed.
    """

    id: str
    series: str
    workload: str
    metric: str
    testbed: str
    repo: str
    last_good: str
    first_bad: str
    direction: Direction
    effect: Interval
    unit: str = ""
    tip: str = ""
    finding: Finding = "suspect"
    triage: Triage | None = None
    why: str = ""
    group: str = ""
    bisection: str = ""
    culprits: tuple[str, ...] = ()
    subject: str = ""
    back_since: str = ""
    duplicate_of: str = ""
    assignee: str = ""
    created: float = 0.0
    changed: float = 0.0
    revision: int = 0

    @property
    def state(self) -> State:
        """What people decided, else what the program found out; nobody looks after what is rejected."""
        if self.triage == "acknowledged" and self.finding in _NOTHING:
            return self.finding
        return self.triage or self.finding

    @property
    def is_open(self) -> bool:
        """Whether somebody, or the program, still has something to do."""
        if self.triage not in (None, "acknowledged") or self.finding in _NOTHING:
            return False
        return self.direction == "regression" or self.finding == "suspect"

    @property
    def is_confirmed(self) -> bool:
        """Whether fresh boots have shown the change."""
        return self.finding in CONFIRMED


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One line of an alert's history. what: its new state, 'assigned to ...', NOTE; why: the note, a reason.

    number: from 1 on, of this alert. at: set by the store.
    """

    who: str
    what: str
    why: str = ""
    at: float = 0.0
    number: int = 0


NOTE = "note"
"""`HistoryEntry.what` of a note."""


@dataclass(frozen=True, slots=True)
class AlertFilter:
    """Which alerts are meant: those for which all holds that is given.

    beginning: of ids; open: whether they are; changed_since: at this time or later.
    """

    beginning: str = ""
    series: str = ""
    workload: str = ""
    group: str = ""
    states: tuple[State, ...] = ()
    findings: tuple[Finding, ...] = ()
    open: bool | None = None
    changed_since: float = 0.0


ALL = AlertFilter()


def alert_id(series: str, last_good: str, first_bad: str, direction: Direction) -> str:
    """Return the id of an alert. The same change of a series has the same one, whoever finds it."""
    same = "\0".join((series, last_good, first_bad, direction))
    return hashlib.sha256(same.encode(errors="surrogatepass")).hexdigest()[:_ID_CHARACTERS]


def why_not(alert: Alert, to: State, by: Actor) -> str | None:
    """Return why an alert may not get a state, None where it may."""
    if by == "program" and to in FINDINGS:
        allowed = _FOLLOWS.get(alert.finding, ())
        return None if to in allowed else f"'{to}' does not follow '{alert.finding}'"
    if to not in TRIAGES:
        return f"'{to}' is for the program to find out"
    if by == "program" and (to != "fixed" or alert.triage not in (None, "acknowledged")):
        return f"'{to}' is for people to decide"
    if alert.triage == to and to != "duplicate":
        return f"it is '{to}' already"
    if to == "acknowledged" and alert.finding in _NOTHING:
        return f"fresh boots did not confirm it: it is '{alert.finding}'"
    if to == "fixed" and alert.direction == "improvement":
        return "an improvement is nothing to fix"
    if to == "fixed" and not alert.is_confirmed:
        return f"it was never confirmed: it is '{alert.finding}'"
    return None
