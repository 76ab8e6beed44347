"""One simulated bisection: the real planner against a synthetic lab, in virtual time.

Testbeds work at once and a single builder serves them; every step (a build, a boot, a run) is an event, its
record is written when it ends, and an idle testbed asks the planner, exactly as the engine does.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from bisector.errors import InfrastructureError
from bisector.model.decisions import Answer, Conclusion, Measure, Purpose
from bisector.model.records import Booted, Built, Left, Ran, Record
from bisector.model.state import State, extend, fold
from bisector.search.loop import OpenTrials, PlannerPort, run_search
from bisector.simulation.noise_model import SyntheticBoot, SyntheticLab
from bisector.simulation.scenario import Scenario

_MAX_DECISIONS = 50_000
"""A planner that needs more than this is not going to end: a defect, reported as one."""


@dataclass(slots=True)
class SimulatedCost:
    """What was used: counts, and lab time in the user's unit of cost."""

    runs: int = 0
    boots: int = 0
    builds: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class SimulatedBisection:
    """The outcome of one simulated bisection.

    wall: virtual time to the end; cpu: planner seconds in all; slowest: those of its slowest decision.
    """

    lab: SyntheticLab
    conclusion: Conclusion
    state: State
    spent: dict[Purpose, SimulatedCost]
    wall: float
    decisions: int
    cpu: float
    slowest: float

    def total(self) -> SimulatedCost:
        """Return what was used for all purposes together."""
        parts = self.spent.values()
        return SimulatedCost(
            sum(p.runs for p in parts),
            sum(p.boots for p in parts),
            sum(p.builds for p in parts),
            sum(p.cost for p in parts),
        )


@dataclass(slots=True)
class _Testbed:
    """A testbed's live boot, if any, and how many runs it has had."""

    name: str
    boot: SyntheticBoot | None = None
    key: str = ""
    runs: int = 0


@dataclass(slots=True)
class _Resources:
    """What all testbeds share: the synthetic lab, the builder, and what was spent."""

    lab: SyntheticLab
    spent: dict[Purpose, SimulatedCost] = field(default_factory=dict)
    built: dict[tuple[int, int], float] = field(default_factory=dict)
    builder_free: float = 0.0
    keys: Iterator[int] = field(default_factory=itertools.count)


_Step = tuple[float, tuple[Record, ...]]
"""When a step ends and what is recorded then."""


def simulate_bisection(scenario: Scenario, seed: int, planner: PlannerPort) -> SimulatedBisection:
    """Search one drawn history to its conclusion."""
    graph, lab = scenario.draw(seed)
    search = _Search(_Resources(lab), planner, fold(graph, scenario.goal, ()))
    names = scenario.testbed_names
    search.testbeds.update((name, _Testbed(name)) for name in names)
    conclusion = run_search(names, search.decide, search.start, search.wait, finish_trials=False)
    spent, seconds = search.resources.spent, search.planner_seconds
    return SimulatedBisection(
        lab, conclusion, search.state, spent, search.now, search.decisions, sum(seconds), max(seconds)
    )


@dataclass(slots=True)
class _Search:
    """A search in virtual time.

    events: when a step ends, its order, its testbed, what is recorded then, and the steps that follow.
    """

    resources: _Resources
    planner: PlannerPort
    state: State
    testbeds: dict[str, _Testbed] = field(default_factory=dict)
    trials: OpenTrials = field(default_factory=OpenTrials)
    events: list[tuple[float, int, str, tuple[Record, ...], Iterator[_Step]]] = field(default_factory=list)
    order: Iterator[int] = field(default_factory=itertools.count)
    now: float = 0.0
    decisions: int = 0
    planner_seconds: list[float] = field(default_factory=list)

    def decide(self, testbed: str) -> Answer:
        """Ask the planner; raise InfrastructureError where it does not come to an end."""
        started = time.thread_time()
        decision = self.trials.ask(self.planner, self.state, testbed)
        self.planner_seconds.append(time.thread_time() - started)
        self.decisions += 1
        if self.decisions > _MAX_DECISIONS and isinstance(decision, Measure):
            raise InfrastructureError(
                f"the planner has not ended after {self.decisions} decisions", details=decision.reason
            )
        return decision

    def start(self, testbed: str, measure: Measure) -> None:
        """Begin a trial now."""
        self._push(testbed, _carry_out(self.resources, self.testbeds[testbed], measure, self.now))

    def wait(self) -> str:
        """Let steps end, the earliest first, until one was the last of its trial; return the testbed."""
        while True:
            self.now, _, testbed, records, steps = heapq.heappop(self.events)
            self.state = extend(self.state, records)
            if not self._push(testbed, steps):
                self.trials.close(testbed)
                return testbed

    def _push(self, testbed: str, steps: Iterator[_Step]) -> bool:
        """Await the next step of a trial; return whether there is one."""
        step = next(steps, None)
        if step is not None:
            heapq.heappush(self.events, (step[0], next(self.order), testbed, step[1], steps))
        return step is not None


def _carry_out(resources: _Resources, testbed: _Testbed, measure: Measure, now: float) -> Iterator[_Step]:
    """Yield the steps of a measurement: leave, build, boot, runs; stops early where the kernel fails."""
    lab, model = resources.lab, resources.lab.model
    spent = resources.spent.setdefault(measure.purpose, SimulatedCost())
    commit, layout = measure.commit, measure.layout
    stays = testbed.boot is not None and measure.boot == testbed.key
    if not stays:
        if testbed.boot is not None:
            yield now, (Left(testbed.key),)
            testbed.boot = None
        if (commit, layout) not in resources.built:
            start = max(now, resources.builder_free)
            now = resources.builder_free = start + model.build_seconds
            resources.built[commit, layout] = now
            spent.builds += 1
            spent.cost += model.build_seconds
            if lab.untestable.get(commit) == "build":
                yield now, (Built(commit, False, model.build_seconds, "", layout, failure="simulated"),)
                return
            yield now, (Built(commit, True, model.build_seconds, lab.binary(commit, layout), layout),)
        else:
            now = max(now, resources.built[commit, layout])  # another testbed may wait for it
        now += model.boot_seconds
        spent.boots += 1
        spent.cost += model.boot_seconds
        key = f"boot-{next(resources.keys)}"
        ok = commit not in lab.untestable
        failure = "" if ok else "simulated"
        seconds, purpose = model.boot_seconds, measure.purpose
        booted = Booted(key, commit, testbed.name, ok, seconds, now, layout, purpose, failure)
        yield now, (replace(booted, fresh_seed=measure.fresh_seed),)
        if not ok:
            return
        testbed.boot = lab.boot(commit, layout, testbed.name, key, fresh=measure.fresh_seed)
        testbed.key, testbed.runs = key, 0
    assert testbed.boot is not None
    for _ in range(max(1, measure.runs)):
        now += model.run_seconds
        spent.runs += 1
        spent.cost += model.run_seconds
        value = testbed.boot.run(testbed.runs, now)
        yield now, (Ran(testbed.key, testbed.runs, {"simulated": value}, model.run_seconds, now),)
        testbed.runs += 1
