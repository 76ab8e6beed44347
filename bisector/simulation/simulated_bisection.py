"""One simulated bisection: the real planner against a synthetic lab, in virtual time.

Testbeds work at once and a single builder serves them; every step (a build, a boot, a run) is an event, its
record is written when it ends, and an idle testbed asks the planner, exactly as the engine does.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bisector.errors import InfrastructureError
from bisector.model.records import Booted, Built, Conclusion, Left, Measure, Purpose, Ran, Record
from bisector.model.state import State, extend, fold
from bisector.ports import Planner
from bisector.simulation.noise_model import SyntheticBoot, SyntheticLab
from bisector.simulation.scenario import Scenario

MakePlanner = Callable[[], Planner]
_MOST_DECISIONS = 50_000
"""A planner that needs more than this is not going to end: a defect, reported as one."""


@dataclass(slots=True)
class Spent:
    """What was used: counts, and lab time in the user's unit of cost."""

    runs: int = 0
    boots: int = 0
    builds: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of one simulated bisection. wall: virtual time to the end; cpu: planner seconds in all."""

    lab: SyntheticLab
    conclusion: Conclusion
    state: State
    spent: dict[Purpose, Spent]
    wall: float
    decisions: int
    cpu: float

    def total(self) -> Spent:
        """Return what was used for all purposes together."""
        result = Spent()
        for part in self.spent.values():
            result.runs += part.runs
            result.boots += part.boots
            result.builds += part.builds
            result.cost += part.cost
        return result


@dataclass(slots=True)
class _Testbed:
    """A testbed's live boot, if any, and how many runs it has had."""

    name: str
    boot: SyntheticBoot | None = None
    key: str = ""
    runs: int = 0


@dataclass(slots=True)
class _World:
    """The moving parts of one trial."""

    lab: SyntheticLab
    spent: dict[Purpose, Spent] = field(default_factory=dict)
    built: dict[tuple[int, int], float] = field(default_factory=dict)
    builder_free: float = 0.0
    keys: Iterator[int] = field(default_factory=itertools.count)


_Step = tuple[float, tuple[Record, ...]]
"""When a step ends and what is recorded then."""


def run_trial(scenario: Scenario, seed: int, planner: Planner) -> Trial:
    """Search one drawn history to its conclusion."""
    graph, lab = scenario.draw(seed)
    state = fold(graph, scenario.goal, ())
    world = _World(lab)
    testbeds = [_Testbed(f"testbed-{i}") for i in range(scenario.testbeds)]
    order = itertools.count()
    idle = list(testbeds)
    active: dict[str, Measure] = {}
    events: list[tuple[float, int, _Testbed, tuple[Record, ...], Iterator[_Step]]] = []
    fresh: list[Record] = []
    now, cpu, decisions = 0.0, 0.0, 0
    while True:
        while idle:
            testbed = idle.pop(0)
            state = extend(state, fresh, pending=tuple(active.values()), idle=testbed.name)
            fresh = []
            started = time.thread_time()
            decision = planner.next(state)
            cpu += time.thread_time() - started
            decisions += 1
            if isinstance(decision, Conclusion):
                return Trial(lab, decision, state, world.spent, now, decisions, cpu)
            if decisions > _MOST_DECISIONS:
                raise InfrastructureError(
                    f"the planner has not ended after {decisions} decisions", details=decision.reason
                )
            steps = _carry_out(world, testbed, decision, now)
            active[testbed.name] = decision
            end, records = next(steps)
            heapq.heappush(events, (end, next(order), testbed, records, steps))
        now, _, testbed, records, steps = heapq.heappop(events)
        fresh.extend(records)
        following = next(steps, None)
        if following is None:
            del active[testbed.name]
            idle.append(testbed)
        else:
            heapq.heappush(events, (following[0], next(order), testbed, following[1], steps))


def _carry_out(world: _World, testbed: _Testbed, measure: Measure, now: float) -> Iterator[_Step]:
    """Yield the steps of a measurement: leave, build, boot, runs; stops early where the kernel fails."""
    lab, model = world.lab, world.lab.model
    spent = world.spent.setdefault(measure.purpose, Spent())
    commit, layout = measure.commit, measure.layout
    stays = testbed.boot is not None and measure.boot == testbed.key
    if not stays:
        if testbed.boot is not None:
            yield now, (Left(testbed.key),)
            testbed.boot = None
        if (commit, layout) not in world.built:
            start = max(now, world.builder_free)
            now = world.builder_free = start + model.build_seconds
            world.built[commit, layout] = now
            spent.builds += 1
            spent.cost += model.build_seconds
            if lab.untestable.get(commit) == "build":
                failed = Built(commit, False, model.build_seconds, layout=layout, failure="simulated")
                yield now, (failed,)
                return
            yield now, (Built(commit, True, model.build_seconds, lab.binary(commit, layout), layout),)
        else:
            now = max(now, world.built[commit, layout])  # another testbed may be waiting for the same build
        now += model.boot_seconds
        spent.boots += 1
        spent.cost += model.boot_seconds
        key = f"boot-{next(world.keys)}"
        ok = commit not in lab.untestable
        booted = Booted(
            key,
            commit,
            testbed.name,
            ok,
            model.boot_seconds,
            now,
            layout,
            measure.purpose,
            "" if ok else "simulated",
        )
        yield now, (booted,)
        if not ok:
            return
        testbed.boot, testbed.key, testbed.runs = lab.boot(commit, layout, testbed.name, key), key, 0
    assert testbed.boot is not None
    for _ in range(max(1, measure.runs)):
        now += model.run_seconds
        spent.runs += 1
        spent.cost += model.run_seconds
        value = testbed.boot.run(testbed.runs, now)
        yield now, (Ran(testbed.key, testbed.runs, {"simulated": value}, model.run_seconds, now),)
        testbed.runs += 1
