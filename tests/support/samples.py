"""Small sets of samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bisector.model.records import Direction
from bisector.stats.samples import SampleSet, Series


def normal(count: int, seed: int, level: float = 100.0, spread: float = 1.0) -> tuple[float, ...]:
    return tuple(level + spread * np.random.default_rng(seed).standard_normal(count))


def boots(
    level: float, count: int, runs: int, seed: int, run_sd: float = 0.01, boot_sd: float = 0.005
) -> list[list[float]]:
    random = np.random.default_rng(seed)
    return [
        [level * (1 + b) * (1 + run_sd * z) for z in random.standard_normal(runs)]
        for b in boot_sd * random.standard_normal(count)
    ]


def series(boots: Sequence[Sequence[float]], unit: str = "", better: Direction = "lower") -> Series:
    return Series(tuple(tuple(runs) for runs in boots), unit, better)


def sample_set(name: str, testbed: str = "", **metrics: tuple[float, ...]) -> SampleSet:
    """Return a set with one boot of each metric, in seconds."""
    return SampleSet(name, {m: Series((v,), "s", "lower") for m, v in metrics.items()}, testbed)
