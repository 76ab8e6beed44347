"""When bisections that share testbeds will probably begin and end. Pure; as good as the planner's estimates.

Testbeds are divided as `engine.shares.schedule` does it in the long run: the most urgent first, among equals
evenly over owners, then over the bisections of each. A bisection goes on as fast as it has testbeds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ForecastBisection:
    """A bisection. left: seconds of one testbed until it ends, None where that is unknown.

    ready: when it may use testbeds, seconds on the clock of `forecast`; infinite where nobody can say.
    """

    id: str
    owner: str
    priority: int
    testbeds: frozenset[str]
    left: float | None
    ready: float


def forecast(
    work: Sequence[ForecastBisection], free: Mapping[str, float], now: float
) -> dict[str, tuple[float | None, float | None]]:
    """Return when each begins and ends, None where that is unknown.

    free: when each testbed can be used, infinite where nobody can say.
    """
    begins: dict[str, float] = {}
    ends: dict[str, float] = {}
    left = {one.id: math.inf if one.left is None else one.left for one in work}
    changes = sorted({*free.values(), *(one.ready for one in work)} - {math.inf})
    while True:
        open_ = [one for one in work if one.id not in ends and one.ready <= now]
        speeds = _speeds(open_, [name for name, when in free.items() if when <= now])
        for name in speeds:
            begins.setdefault(name, now)
        nearest = min((now + left[name] / speed for name, speed in speeds.items()), default=math.inf)
        change = next((when for when in changes if when > now), math.inf)
        then = min(nearest, change)
        if then == math.inf:
            return {one.id: (begins.get(one.id), ends.get(one.id)) for one in work}
        for name, speed in speeds.items():
            if now + left[name] / speed <= then:
                ends[name] = then
            left[name] -= (then - now) * speed
        now = then


def _speeds(work: Sequence[ForecastBisection], testbeds: Sequence[str]) -> dict[str, float]:
    """Return how many testbeds each bisection has on average, without those that have none."""
    speeds: dict[str, float] = defaultdict(float)
    for testbed in testbeds:
        able = [one for one in work if testbed in one.testbeds]
        first = min((one.priority for one in able), default=0)
        by_owner: dict[str, list[str]] = defaultdict(list)
        for one in able:
            if one.priority == first:
                by_owner[one.owner].append(one.id)
        for names in by_owner.values():
            for name in names:
                speeds[name] += 1 / len(by_owner) / len(names)
    return speeds
