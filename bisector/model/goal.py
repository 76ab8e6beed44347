"""The user's goal: the deciding metric with its threshold, limits, clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

Direction = Literal["lower", "higher"]
"""Which way a metric is better."""


TestbedClock = Literal["wall", "instructions"]

Find = Literal["regression", "fix"]
"""What is looked for: the commit that made the metric worse, or the one that made it better."""

Unit = Literal["commit", "kernel"]
"""What stands in the graph: commits, or kernels that somebody listed."""

Verdict = Literal["good", "bad", "skip"]

MODELLED = "modelled "
"""What the unit of a number begins with that was not measured: it is of a model of caches or predictors."""

LEAST_ALPHA = 1e-6
"""The smallest accepted chance of a wrong answer: a rank test then needs 12 groups a side (2/C(24,12))."""


def worse_sign(better: Direction) -> float:
    """Return 1 where larger values are worse, else -1."""
    return 1.0 if better == "lower" else -1.0


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

    @property
    def worse_sign(self) -> float:
        """1 where larger values are worse, else -1."""
        return worse_sign(self.better)


@dataclass(frozen=True, slots=True)
class Terms:
    """What people call the two ends, and what lies between them.

    A search knows one direction: in graph, marks and records 'good' is the older end, without the change, and
    'bad' the newer one. Where a fix is looked for, people call the older end bad.
    one, several: what is found; change: what it did; unit: what is searched among.
    """

    old: Literal["good", "bad"]
    new: Literal["good", "bad"]
    one: str
    several: str
    change: str
    unit: Unit = "commit"

    @property
    def parent(self) -> str:
        """What stands before a commit or kernel."""
        return "parent" if self.unit == "commit" else "predecessor"

    @property
    def other_change(self) -> Literal["loss", "gain"]:
        """What a change in the other direction is."""
        return "gain" if self.change == "loss" else "loss"

    @property
    def new_build(self) -> str:
        """What a trial needs whose kernel is not there yet."""
        return "a new build" if self.unit == "commit" else "to be unpacked"

    def turned(self, verdict: Verdict) -> Verdict:
        """Return what people call a verdict of the search; and as well the search's word for theirs."""
        side_of: Mapping[Verdict, Verdict] = {"good": self.old, "bad": self.new}
        return side_of.get(verdict, verdict)

    def verdict(self, stated: Verdict | Literal["old", "new"]) -> Verdict:
        """Return a verdict in people's terms, where git's 'old' and 'new' are allowed as well."""
        return self.old if stated == "old" else self.new if stated == "new" else stated


TERMS: Mapping[Find, Terms] = {
    "regression": Terms("good", "bad", "culprit", "culprits", "loss"),
    "fix": Terms("bad", "good", "fix", "fixes", "gain"),
}


@dataclass(frozen=True, slots=True)
class Budget:
    """Upper limits on lab time (seconds), builds and runs; None means unlimited."""

    seconds: float | None = None
    builds: int | None = None
    runs: int | None = None


@dataclass(frozen=True, slots=True)
class Goal:
    """What the user asked for: the deciding metric, alpha, limits and how the ends are treated.

    alpha: from LEAST_ALPHA to below 0.5. clock: of the testbeds; under 'instructions' repetition k is
    compared with repetition k. scan: search even where the ends do not differ. find: with 'fix' the search's
    "worse" is better for people, see `Terms`. unit: of the search. modelled: the metric is one of a model of
    caches or predictors, whose numbers differ from boot to boot. fresh_seeds: boots differ in their random
    numbers, because the workload asks for it.
    """

    metric: Metric
    alpha: float = 0.05
    budget: Budget = field(default_factory=Budget)
    clock: TestbedClock = "wall"
    scan: bool = False
    max_runs_per_boot: int = 64
    find: Find = "regression"
    unit: Unit = "commit"
    modelled: bool = False
    fresh_seeds: bool = False

    @property
    def exact(self) -> bool:
        """Whether run and boot noise are (nearly) zero."""
        return self.clock == "instructions" and not self.modelled and not self.fresh_seeds

    @property
    def sought_sign(self) -> float:
        """1 where a rise of the metric is looked for, else -1."""
        return self.metric.worse_sign if self.find == "regression" else -self.metric.worse_sign

    @property
    def terms(self) -> Terms:
        """The words for what is looked for."""
        return replace(TERMS[self.find], unit=self.unit)
