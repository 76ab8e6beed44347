"""Small sets of samples, and small profiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bisector.linux.profile import Profile, Symbol, folded
from bisector.model.goal import Direction
from bisector.stats.comparison_table import ComparisonTable, build
from bisector.stats.samples import SampleSeries, SampleSet


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


def series(boots: Sequence[Sequence[float]], unit: str = "", better: Direction = "lower") -> SampleSeries:
    return SampleSeries(tuple(tuple(runs) for runs in boots), unit, better)


def sample_set(name: str, testbed: str = "", **metrics: tuple[float, ...]) -> SampleSet:
    """Return a set with one boot of each metric, in seconds."""
    return SampleSet(name, {m: SampleSeries((v,), "s", "lower") for m, v in metrics.items()}, testbed)


def two_kernels() -> ComparisonTable:
    """Return a table of two kernels on one testbed: a time, a rate, a published mean, sizes of sections."""
    return build(
        [
            [
                SampleSet(
                    "6.1",
                    {
                        "real": SampleSeries(((10.0, 10.1, 9.9, 10.0),), "s", "lower"),
                        "iops": SampleSeries(((100.0, 110.0, 90.0, 100.0),), "IOPS", "higher"),
                        "cycles": SampleSeries(((2e6,),), "", "lower", 0.01, 5),
                    },
                    "amd",
                    sizes={"text": 100, "data": 20, "bss": 5, "rodata": 7},
                )
            ],
            [
                SampleSet(
                    "6.2-rt",
                    {
                        "real": SampleSeries(((12.0, 12.1, 11.9, 12.0),), "s", "lower"),
                        "iops": SampleSeries(((120.0, 110.0, 105.0, 100.0),), "IOPS", "higher"),
                        "cycles": SampleSeries(((2.1e6,),), "", "lower", 0.02, 5),
                    },
                    "amd",
                    sizes={"text": 110, "data": 20, "rodata": 7},
                )
            ],
        ]
    )


def k(name: str) -> Symbol:
    return Symbol(name, "kernel")


def recorded(name: str, stacks: dict[str, float]) -> Profile:
    found = {(Symbol("task", "task"), *(k(f) for f in text.split())): w for text, w in stacks.items()}
    own, whole = folded(found)
    total = sum(found.values())
    return Profile(name, own, whole, found, total, round(total))


OLD = recorded("old", {"sys_read vfs_read copy": 500, "sys_read vfs_read lock": 300, "idle": 9200})
NEW = recorded("new", {"sys_read vfs_read copy": 500, "sys_read vfs_read lock": 900, "idle": 8600})
CALLS = (
    Profile("a", calls={k("alloc"): 1000, k("free"): 500}, spent={k("alloc"): 100.0, k("free"): 50.0}),
    Profile("b", calls={k("alloc"): 2000, k("free"): 500}, spent={k("alloc"): 200.0, k("free"): 75.0}),
)
"""One function is called more often, the other takes longer."""
