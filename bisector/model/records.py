"""The values that everything else passes around: the graph, the goal, records, actions and conclusions.

All are frozen and turn into JSON and back without loss. Commits are indices into `CommitGraph.shas`; names of
commits belong to the edges of the program.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bisector.model.facts import KernelFacts, MonitorResult

Direction = Literal["lower", "higher"]
"""Which way a metric is better."""
TestbedClock = Literal["wall", "instructions"]
Purpose = Literal["verify", "search", "certify", "attribute"]
Userspace = Literal["debian", "initramfs"]
"""A distribution's root with SSH, for kernels that its C library runs on (3.2 and later); or a few static
programs in an initramfs, driven over a serial port, for any kernel since 2.6.18."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """The smallest change worth blaming: a fraction of the good level (0.05 = 5%) or an absolute number."""

    value: float
    relative: bool = True


@dataclass(frozen=True, slots=True)
class Metric:
    """One measured quantity. `unit` is a display unit such as 's' or 'ops/s'."""

    name: str
    unit: str
    better: Direction
    threshold: Threshold


@dataclass(frozen=True, slots=True)
class Budget:
    """Upper limits on lab time (seconds), builds and runs; None means unlimited."""

    seconds: float | None = None
    builds: int | None = None
    runs: int | None = None


@dataclass(frozen=True, slots=True)
class Goal:
    """What the user asked for: the deciding metric, alpha in (0, 0.5), limits and how the ends are treated.

    clock: the clock of the testbeds; under 'instructions' run and boot noise are (nearly) zero and
    repetition k is compared with repetition k. scan: search even where the ends do not differ.
    """

    metric: Metric
    alpha: float = 0.05
    budget: Budget = field(default_factory=Budget)
    clock: TestbedClock = "wall"
    scan: bool = False
    max_runs_per_boot: int = 64


@dataclass(frozen=True, slots=True)
class CommitGraph:
    """The history under search, topologically sorted: every parent has a smaller index than its child.

    Nodes are the candidates (reachable from bad, not from good) and the boundary: good itself, the parents of
    candidates that are not candidates (fork points), and merge bases. `parents[i]` holds only nodes of
    this graph; a boundary node has none (its history is outside), a root commit has none either.

    shas: full commit ids; candidate: True where the commit may be the culprit; good, bad: indices;
    merge_bases: empty when good is an ancestor of bad; untestable: index -> reason, known before any trial
    (not Linux, `--skip`); weights: prior weight of a commit, missing means 1.
    """

    shas: tuple[str, ...]
    parents: tuple[tuple[int, ...], ...]
    candidate: tuple[bool, ...]
    good: int
    bad: int
    merge_bases: tuple[int, ...] = ()
    untestable: Mapping[int, str] = field(default_factory=dict)
    weights: Mapping[int, float] = field(default_factory=dict)


# --- records: the state only ever grows by these ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Built:
    """A finished build, good or failed. `binary` is equal for two commits whose kernels are identical.

    kernel: None where the build failed; details: the end of a failed build's log.
    """

    commit: int
    ok: bool
    seconds: float
    binary: str = ""
    layout: int = 0
    cached: bool = False
    failure: str = ""
    kernel: KernelFacts | None = None
    details: str = ""


@dataclass(frozen=True, slots=True)
class Booted:
    """One boot. `boot` is its id; ok False means that the kernel failed (never infrastructure).

    facts: what the running kernel says of itself; workload, image: checksums of the payload and of the root
    file system; console: path of the log; overhead: seconds that perfbisect added to build, boot and runs.
    details: what a failed boot printed last.
    """

    boot: str
    commit: int
    testbed: str
    ok: bool
    seconds: float
    at: float
    layout: int = 0
    purpose: Purpose = "search"
    failure: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    workload: str = ""
    image: str = ""
    console: str = ""
    overhead: float | None = None
    details: str = ""


@dataclass(frozen=True, slots=True)
class Ran:
    """One run in a boot. `index` counts from 0 within the boot; values are in the metrics' own units.

    at: seconds since the epoch when it ended; seconds: host time it took, guest_seconds: the guest's; flags:
    why it is suspicious ('warn', 'stall', 'oom', 'taint', 'clock'); raw: path of the kept output; warmup runs
    are kept and never samples.
    """

    boot: str
    index: int
    values: Mapping[str, float]
    seconds: float
    at: float
    flags: tuple[str, ...] = ()
    warmup: bool = False
    raw: str = ""
    guest_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The workload failed in this boot because of the kernel (crash, error, no metric)."""

    boot: str
    failure: str
    details: str = ""


@dataclass(frozen=True, slots=True)
class Left:
    """The boot has ended; it can take no more runs. lost: it ended by itself (infrastructure)."""

    boot: str
    lost: bool = False
    monitors: tuple[MonitorResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Marked:
    """The user said what a commit is (`perfbisect mark`)."""

    commit: int
    verdict: Literal["good", "bad", "skip"]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Discarded:
    """The user threw away the data of a testbed or of one boot."""

    kind: Literal["testbed", "boot"]
    name: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Irrelevant:
    """Commits that cannot change the kernel, by the files that the builds so far have read; the latest holds.

    kept: why the others may change it -> how many of them; builds: how many told what they read.
    """

    commits: tuple[int, ...]
    kept: Mapping[str, int]
    builds: int


Record = Built | Booted | Ran | RunFailed | Left | Marked | Discarded | Irrelevant


# --- what the planner answers -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measure:
    """The next trial: so many runs of the workload on a commit, in a live boot or a new one.

    boot: id of the live boot to go on with, None for a new boot. testbed: None leaves the choice to the
    engine. layout: 0 is the ordinary build, k > 0 the k-th alternative code layout of the same commit.
    left: lab seconds until the next culprit is located, at the rate of this trial, or is compared with its
    parents; None where nobody can say.
    """

    commit: int
    runs: int
    purpose: Purpose
    reason: str
    boot: str | None = None
    testbed: str | None = None
    layout: int = 0
    left: float | None = None


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its limits, all in the same unit; low <= estimate <= high."""

    low: float
    estimate: float
    high: float


class Ending(enum.Enum):
    """How a bisection can end."""

    CULPRIT = "culprit"
    CULPRITS = "culprits"
    CULPRIT_SET = "culprit set"
    SPREAD = "spread"
    FIXED_ON_GOOD_SIDE = "fixed on good's side"
    NOT_REPRODUCED = "not reproduced"
    INCONCLUSIVE = "inconclusive"


EXIT_CODES: Mapping[Ending, int] = {
    Ending.CULPRIT: 0,
    Ending.CULPRITS: 0,
    Ending.NOT_REPRODUCED: 2,
    Ending.CULPRIT_SET: 4,
    Ending.SPREAD: 5,
    Ending.FIXED_ON_GOOD_SIDE: 5,
    Ending.INCONCLUSIVE: 5,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A culprit, or the smallest set it is in. One commit: proven; several: cannot be told apart.

    effect: relative change of the metric caused by it (0.35 = the number rises by 35%), with interval.
    parents: the parents it was certified against; certified: whether the fresh comparison was done and held.
    small: a proven change that does not reach the threshold, named so that the changes add up: no culprit.
    """

    commits: tuple[int, ...]
    effect: Interval
    confidence: float
    parents: tuple[int, ...] = ()
    certified: bool = False
    note: str = ""
    small: bool = False


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The end of a bisection: what was found, culprits first, and what is left unexplained.

    total: relative change from good to bad; rest: what the findings leave unexplained. summary says it all
    in sentences without commit names (interfaces print those beside it).
    """

    ending: Ending
    summary: str
    findings: tuple[Finding, ...] = ()
    total: Interval | None = None
    rest: Interval | None = None
    confidence: float = 0.0
    warnings: tuple[str, ...] = ()
    levels: tuple[tuple[int, Interval], ...] = ()

    @property
    def culprits(self) -> tuple[Finding, ...]:
        """The findings without those that are too small."""
        return tuple(f for f in self.findings if not f.small)


Decision = Measure | Conclusion
