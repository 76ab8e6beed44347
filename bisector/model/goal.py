"""What the user asked for: the deciding metric with its threshold, limits, clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Direction = Literal["lower", "higher"]
"""Which way a metric is better."""


TestbedClock = Literal["wall", "instructions"]

LEAST_ALPHA = 1e-6
"""The smallest accepted chance of a wrong answer: a rank test then needs 12 groups a side (2/C(24,12))."""


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
    """What the user asked for: the deciding metric, alpha, limits and how the ends are treated.

    alpha: from LEAST_ALPHA to below 0.5. clock: of the testbeds; under 'instructions' run and boot noise are
    (nearly) zero and repetition k is compared with repetition k. scan: search even where the ends do not
    differ.
    """

    metric: Metric
    alpha: float = 0.05
    budget: Budget = field(default_factory=Budget)
    clock: TestbedClock = "wall"
    scan: bool = False
    max_runs_per_boot: int = 64
