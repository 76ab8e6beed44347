"""Nightly series: one branch, one workload, one testbed, measured again and again.

Times are seconds since the epoch by the database's clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bisector.model.decisions import Interval

SeriesState = Literal["active", "paused"]
NightKind = Literal["night", "backfill"]
"""night: the tip of its time; backfill: an older commit, measured later."""
NightState = Literal["due", "running", "measured", "failed", "missed"]
"""due: it has no bisection yet; running: it is a bisection; failed, missed: `Night.why` says why."""
VerdictStatus = Literal["unmeasured", "learning", "steady", "suspect", "testbed suspect"]
Confirmed = Literal["confirmed", "rejected", "undecided"]

OPEN_NIGHTS: tuple[NightState, ...] = ("due", "running")
"""States of nights that have not ended."""


MAX_BOOTS = 100
"""Of the tip in a night, at most: so many take a machine all night."""
MAX_BUDGET_HOURS = 24 * 7.0
"""Machine hours in seven days, on the one testbed that a series has."""

_OWNER = "series "
_OF_NIGHTS = ("night", "backfill", "confirm")


def bisection_id(series: str, kind: Literal["night", "backfill", "confirmation"], rest: str) -> str:
    """Return the id of a night's bisection, or of a confirmation. rest: tells it from others of its kind."""
    return f"{series}-{'confirm' if kind == 'confirmation' else kind}-{rest}"


def is_of_night(bisection: str, owner: str) -> bool:
    """Return whether a bisection is a night or a confirmation, not a search that a series began."""
    series = series_of(owner)
    return series != "" and bisection.startswith(tuple(f"{series}-{word}-" for word in _OF_NIGHTS))


def owner_of(series: str) -> str:
    """Return the owner of a series' bisections: what is counted against its budget."""
    return _OWNER + series


def series_of(owner: str) -> str:
    """Return the series whose bisections have an owner; '' where they are a person's."""
    return owner.removeprefix(_OWNER) if owner.startswith(_OWNER) else ""


@dataclass(frozen=True, slots=True)
class Series:
    """What is measured when. created: also distinguishes a series from an earlier one of its name.

    branch: a branch or another name of a commit; with a '*' the newest tag that matches is taken. recipe: by
    which all its kernels are built; reference: full id of the commit that each night boots beside the tip.
    threshold: as a person writes it ('2%', '0.1 s'), None for the workload's own. cron: five fields, in
    time_zone (IANA); budget: machine hours in seven days; boots: of the tip, a night; why: it is paused.
    """

    name: str
    repo: str
    branch: str
    workload: str
    recipe: str
    testbed: str
    cron: str
    time_zone: str
    budget: float
    boots: int
    reference: str
    threshold: str | None = None
    state: SeriesState = "active"
    why: str = ""
    created_by: str = ""
    created: float = 0.0


@dataclass(frozen=True, slots=True)
class NightVerdict:
    """What the series showed after a night, see `stats.change_points`. Nights are numbers of nights.

    night_sd: standard deviation of one night; effect, reference: change of the tip and of the reference, with
    95% limits; all relative (0.02 = 2%) or, with a threshold in a unit, in that unit.
    """

    status: VerdictStatus
    night_sd: float | None = None
    last_good: int | None = None
    first_bad: int | None = None
    effect: Interval | None = None
    reference: Interval | None = None


@dataclass(frozen=True, slots=True)
class Night:
    """One night. number: from 1 on, of its series; scheduled: when it was due.

    place: orders the nights of a series as its history goes; of a back-filled one it lies between those of
    the nights whose commits are its neighbours. commit: full id, '' until it is known; bisection: its id;
    note: what people should know, such as a branch that was force-pushed. confirmation: id of the bisection
    that tests what this night made suspect, with its end in `confirmed`. new_level: the nights from this one
    on are not compared with those before.
    """

    series: str
    number: int
    scheduled: float
    place: float
    kind: NightKind = "night"
    state: NightState = "due"
    commit: str = ""
    bisection: str = ""
    why: str = ""
    note: str = ""
    verdict: NightVerdict | None = None
    confirmation: str = ""
    confirmed: Confirmed | None = None
    new_level: bool = False

    @property
    def is_open(self) -> bool:
        """Whether something is left to do for it."""
        judged = self.state != "measured" or self.verdict is not None
        return self.state in OPEN_NIGHTS or not judged or (self.confirmation != "" and self.confirmed is None)


@dataclass(frozen=True, slots=True)
class Point:
    """What one boot of a night measured. values: of the deciding metric, one a run; at: of its first run."""

    night: int
    boot: str
    commit: str
    testbed: str
    reference: bool
    values: tuple[float, ...]
    at: float
