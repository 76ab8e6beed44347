"""How often two equal commits are said to differ, in families of noise.

    python -m tests.bench.search.equal_ends [TRIALS [FAMILY ...]]

Each trial boots both ends in the order ABBA on each testbed, so many boots of each, and asks after every boot
of all testbeds whether the ends differ. A claim at any look counts, as it would end the verification; of
several testbeds also one that one of them shows it. The planner's alpha is 5%. No posterior is computed.
"""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from bisector.model.commit_graph import CommitGraph
from bisector.model.goal import Goal, Metric, Threshold
from bisector.model.records import Booted, Ran, Record
from bisector.model.state import State, extend, fold
from bisector.search import endpoints
from bisector.search.cache import PlannerCache
from bisector.search.testbeds.ends_by_testbed import choose_testbeds

GRAPH = CommitGraph(("a" * 40, "b" * 40), ((), (0,)), (False, True), 0, 1)
GOAL = Goal(Metric("m", "s", "lower", Threshold(0.01)))
ORDER = (0, 1, 1, 0)
BOOTS, RUNS = 16, 3
"""Boots of both ends on each testbed, and runs in each."""
TRIALS = 1000

Draw = Callable[[np.random.Generator, int], list[float]]
"""The values of the next boot, in percent about the level; the number counts a testbed's boots."""


@dataclass(frozen=True)
class Family:
    """What is drawn. noise: factor on each testbed's scatter; their number is that of the testbeds."""

    draw: Draw
    noise: tuple[float, ...] = (1.0,)


def normal(boot: float, run: float) -> Draw:
    """Return normal boots and runs of these deviations, in percent."""

    def draw(random: np.random.Generator, number: int) -> list[float]:
        offset = boot * random.standard_normal()
        return [float(offset + run * z) for z in random.standard_normal(RUNS)]

    return draw


def modes(gap: float, run: float, share: float = 0.3) -> Draw:
    """Return boots in a fast or a slow mode, so many percent apart."""

    def draw(random: np.random.Generator, number: int) -> list[float]:
        offset = gap * float(random.random() < share)
        return [float(offset + run * z) for z in random.standard_normal(RUNS)]

    return draw


def grouped_modes(gap: float, run: float, length: int = 4) -> Draw:
    """Return boots whose mode stays for so many boots in a row on a testbed."""
    mode = 0.0

    def draw(random: np.random.Generator, number: int) -> list[float]:
        nonlocal mode
        if number % length == 0:
            mode = gap * float(random.random() < 0.5)
        return [float(mode + run * z) for z in random.standard_normal(RUNS)]

    return draw


def stepped(step: float, sd: float) -> Draw:
    """Return normal runs that are rounded to a step, in percent: a coarse clock."""

    def draw(random: np.random.Generator, number: int) -> list[float]:
        return [float(step * round(sd * z / step)) for z in random.standard_normal(RUNS)]

    return draw


def two_valued(gap: float) -> Draw:
    """Return boots whose runs are all of one of two values, exactly."""

    def draw(random: np.random.Generator, number: int) -> list[float]:
        return [gap * float(random.random() < 0.5)] * RUNS

    return draw


FAMILIES: Mapping[str, Family] = {
    "one testbed, runs": Family(normal(0.0, 2.0)),
    "one testbed, boots": Family(normal(2.0, 0.2)),
    "two testbeds, runs": Family(normal(0.0, 2.0), (1.0, 1.0)),
    "two testbeds 1:3, runs": Family(normal(0.0, 1.0), (1.0, 3.0)),
    "two testbeds, boots": Family(normal(2.0, 0.2), (1.0, 1.0)),
    "two testbeds 1:3, boots": Family(normal(1.0, 0.1), (1.0, 3.0)),
    "three testbeds, runs": Family(normal(0.0, 2.0), (1.0, 1.0, 1.0)),
    "three testbeds 1:1.7:3, runs": Family(normal(0.0, 1.0), (1.0, 1.7, 3.0)),
    "three testbeds, boots": Family(normal(2.0, 0.2), (1.0, 1.0, 1.0)),
    "three testbeds 1:1.7:3, boots": Family(normal(1.0, 0.1), (1.0, 1.7, 3.0)),
    "two modes 3% apart": Family(modes(3.0, 0.1)),
    "two modes 3% apart, two testbeds": Family(modes(3.0, 0.1), (1.0, 1.0)),
    "rare mode 3% apart": Family(modes(3.0, 0.1, 0.1)),
    "modes that stay for four boots": Family(grouped_modes(3.0, 0.1)),
    "values in steps of 2%": Family(stepped(2.0, 1.0)),
    "two values 2% apart": Family(two_valued(2.0)),
}


def claims(family: Family, random: np.random.Generator) -> int:
    """Return after how many boots of all testbeds the equal ends are said to differ; 0 for never."""
    cache, state = PlannerCache(GRAPH, None), fold(GRAPH, GOAL, ())
    for number in range(BOOTS):
        for testbed, factor in enumerate(family.noise):
            state = _boot(state, number, testbed, factor, family.draw(random, number))
        context = cache.context(state)
        together = endpoints.ends_differ(context, endpoints.compare_ends(context, cache))
        if choose_testbeds(context, cache, together).differ:
            return (number + 1) * len(family.noise)
    return 0


def _boot(state: State, number: int, testbed: int, factor: float, values: list[float]) -> State:
    key, at = f"b{number}.{testbed}", float(number)
    records: list[Record] = [
        Booted(key, ORDER[number % 4], f"t{testbed}", True, 5.0, at, layout=number // 2 % 3, purpose="verify")
    ]
    level = 100.0 + 20.0 * testbed
    records += [
        Ran(key, k, {"m": level * math.exp(factor * value / 100)}, 1.0, at + k / 10)
        for k, value in enumerate(values)
    ]
    return extend(state, records)


def main(arguments: list[str]) -> int:
    """Print a row for each family."""
    trials = int(arguments[0]) if arguments else TRIALS
    print("| two equal commits | said to differ | 95% interval | by 2 against 2 boots |\n|---|---|---|---|")
    for name in arguments[1:] or FAMILIES:
        random = np.random.default_rng(zlib.crc32(name.encode()))
        found = [claims(FAMILIES[name], random) for _ in range(trials)]
        false = sum(when > 0 for when in found)
        low, high = binomtest(false, trials).proportion_ci(method="exact")
        few = sum(0 < when <= 4 for when in found)
        print(f"| {name} | {false} of {trials} | {low:.1%} .. {high:.1%} | {few} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
