"""The planner's decisions: the next trial, or the conclusion."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bisector.errors import ExitCode

Purpose = Literal["verify", "search", "certify", "attribute"]


@dataclass(frozen=True, slots=True)
class Measure:
    """The next trial: so many runs of the workload on a commit, in a live boot or a new one.

    boot: id of the live boot to go on with, None for a new boot. testbed: None leaves the choice to the
    engine. layout: 0 is the ordinary build, k > 0 the k-th alternative code layout of the same commit.
    left: lab seconds until the next culprit is located, at the rate of this trial, or is compared with its
    parents; None where that is unknown. suspects: (commit, probability that it is a culprit), the most
    probable first, without those below a percent; empty while the ends are compared. fresh_seed: a new boot
    gets random numbers of its own, because with those of all boots it would be a copy of an earlier one.
    """

    commit: int
    runs: int
    purpose: Purpose
    reason: str
    boot: str | None = None
    testbed: str | None = None
    layout: int = 0
    left: float | None = None
    suspects: tuple[tuple[int, float], ...] = ()
    fresh_seed: bool = False


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its limits, all in the same unit; low <= estimate <= high."""

    low: float
    estimate: float
    high: float


class Ending(enum.Enum):
    """How a bisection can end. FIX and the next three: of a search for a fix; MENDED and two more: of a try.

    MEASURED: a night of a series; CONFIRMED, REJECTED: what a night made suspect.
    """

    CULPRIT = "culprit"
    CULPRITS = "culprits"
    CULPRIT_SET = "culprit set"
    SPREAD = "spread"
    FIXED_ON_GOOD_SIDE = "fixed on good's side"
    NOT_REPRODUCED = "not reproduced"
    INCONCLUSIVE = "inconclusive"
    FIX = "fix"
    FIXES = "fixes"
    FIX_SET = "fix set"
    BROKEN_ON_BAD_SIDE = "broken on bad's side"
    MENDED = "mended"
    PARTLY_MENDED = "partly mended"
    NOT_MENDED = "not mended"
    MEASURED = "measured"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"


FIXED = frozenset({Ending.FIX, Ending.FIXES, Ending.FIX_SET})
FOUND = FIXED | {Ending.CULPRIT, Ending.CULPRITS, Ending.CULPRIT_SET}
"""The endings of a search that has proven a change, and those of them where a fix was looked for."""

EXIT_CODES: Mapping[Ending, ExitCode] = {
    Ending.CULPRIT: ExitCode.DONE,
    Ending.CULPRITS: ExitCode.DONE,
    Ending.NOT_REPRODUCED: ExitCode.NOT_REPRODUCED,
    Ending.CULPRIT_SET: ExitCode.CULPRIT_SET,
    Ending.SPREAD: ExitCode.INCONCLUSIVE,
    Ending.FIXED_ON_GOOD_SIDE: ExitCode.INCONCLUSIVE,
    Ending.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    Ending.FIX: ExitCode.DONE,
    Ending.FIXES: ExitCode.DONE,
    Ending.FIX_SET: ExitCode.CULPRIT_SET,
    Ending.BROKEN_ON_BAD_SIDE: ExitCode.INCONCLUSIVE,
    Ending.MENDED: ExitCode.DONE,
    Ending.PARTLY_MENDED: ExitCode.PARTLY_MENDED,
    Ending.NOT_MENDED: ExitCode.NOT_MENDED,
    Ending.MEASURED: ExitCode.DONE,
    Ending.CONFIRMED: ExitCode.DONE,
    Ending.REJECTED: ExitCode.NOT_REPRODUCED,
}


NO_FRESH_BOOTS_TELL = "no fresh boots tell"
"""A set's note where a test may yet split it."""
NEWEST_IS_NONE = "one without the newest shows the change as well, so it is among the others"
"""A set's note where fresh boots exclude the commit that was measured for it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A culprit, or the smallest set it is in. One commit: proven; several: cannot be told apart.

    effect: relative change of the metric caused by it (0.35 = the number rises by 35%), with interval.
    parents: the parents it was certified against; certified: whether the fresh comparison was done and held.
    small: a proven change that does not reach the threshold, named so that the changes add up: no culprit.
    opposite: it moves the metric the other way than what is looked for, a gain among losses: no culprit.
    probability: that it is a culprit, or one of the set, given all that was measured; None for a small one,
    and in what earlier versions stored. confidence: of a proof, 1 less the alpha that bounds its error; of
    what is not proven, its probability.
    """

    commits: tuple[int, ...]
    effect: Interval
    confidence: float
    parents: tuple[int, ...] = ()
    certified: bool = False
    note: str = ""
    small: bool = False
    opposite: bool = False
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Mending:
    """What a change does to a loss, as relative changes of the metric.

    loss: from the parent to the unpatched kernel; gain: from the unpatched to the patched one; rest: from the
    parent to the patched one. share: of the loss that is gone, 1 for all of it; None while no loss is proven.
    """

    loss: Interval
    gain: Interval
    rest: Interval
    share: Interval | None

    def gone(self) -> str:
        """Return the share of the loss that is gone, in words."""
        share = self.share
        return (
            f"{share.estimate:.0%} ({share.low:.0%} .. {share.high:.0%})" if share is not None else "unknown"
        )


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The end of a bisection: what was found, culprits first, and what is left unexplained.

    total: relative change from good to bad; rest: what the findings leave unexplained. summary says it all
    in sentences without commit names (interfaces print those beside it). searched_on: the testbeds whose
    measurements count, where some did not show the change; empty for all.
    """

    ending: Ending
    summary: str
    findings: tuple[Finding, ...] = ()
    total: Interval | None = None
    rest: Interval | None = None
    confidence: float = 0.0
    warnings: tuple[str, ...] = ()
    levels: tuple[tuple[int, Interval], ...] = ()
    mending: Mending | None = None
    searched_on: tuple[str, ...] = ()

    @property
    def culprits(self) -> tuple[Finding, ...]:
        """The findings without those that are too small, or change the metric the other way."""
        return tuple(f for f in self.large if not f.opposite)

    @property
    def large(self) -> tuple[Finding, ...]:
        """The findings without those that are too small: what changed the metric in either direction."""
        return tuple(f for f in self.findings if not f.small)


@dataclass(frozen=True, slots=True)
class Released:
    """The testbed that asked is not needed any more: the search goes on with the testbeds named, and why."""

    testbeds: tuple[str, ...]
    reason: str


Decision = Measure | Conclusion
Answer = Decision | Released
"""What the planner says to the testbed that asks; `Released` only where several have measured."""
