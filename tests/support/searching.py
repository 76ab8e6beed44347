"""A planner driven by hand: a straight history, a goal, measurements as a function or as a list of visits."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Answer, Conclusion, Ending, Finding, Interval, Measure, Purpose
from bisector.model.goal import Goal, Metric, Threshold
from bisector.model.records import Booted, Built, Left, Ran, Record
from bisector.model.state import State, extend, fold
from bisector.search.cache import PlannerCache
from bisector.search.context import SearchContext
from bisector.search.loop import OpenTrials, PlannerPort, run_search
from bisector.search.planner import Planner
from bisector.search.sequential_test import Evidence
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import Culprit, Scenario

Value = Callable[[int, int], float | None]
"""What run number `run` of `commit` reads: value(commit, run); None for a commit that does not boot."""


def linear(n: int, **more: Any) -> CommitGraph:
    parents: tuple[tuple[int, ...], ...] = tuple(() if i == 0 else (i - 1,) for i in range(n + 1))
    return graph_of(parents, **more)


def graph_of(parents: tuple[tuple[int, ...], ...], **more: Any) -> CommitGraph:
    """Return a graph of these parents: the first commit is good, the last one bad, the rest candidates."""
    n = len(parents)
    return CommitGraph(
        tuple(f"{i:040x}" for i in range(n)), parents, (False, *[True] * (n - 1)), 0, n - 1, **more
    )


def goal(**more: Any) -> Goal:
    return Goal(Metric("real", "s", "lower", Threshold(0.05)), **more)


def drive(
    graph: CommitGraph,
    wanted: Goal,
    value: Value,
    limit: int = 400,
    planner: PlannerPort | None = None,
    unbuildable: Container[int] = (),
) -> tuple[Conclusion, list[Record], list[Measure]]:
    """Carry out what the planner asks; return the conclusion, the records and the trials that led to it."""
    planner = planner or Planner()
    state = fold(graph, wanted, ())
    trials, decisions = OpenTrials(), list[Measure]()

    def decide(testbed: str) -> Answer:
        decision = trials.ask(planner, state, testbed)
        if isinstance(decision, Measure):
            decisions.append(decision)
            assert len(decisions) <= limit, "no end"
        return decision

    def start(testbed: str, trial: Measure) -> None:
        nonlocal state
        state = extend(state, _carry_out(state, trial, len(decisions) - 1, value, unbuildable))

    def wait() -> str:
        trials.close("t")
        return "t"

    conclusion = run_search(["t"], decide, start, wait, finish_trials=True)
    return conclusion, list(state.records), decisions


def _carry_out(
    state: State, trial: Measure, number: int, value: Value, unbuildable: Container[int]
) -> Iterator[Record]:
    """Yield the records of one trial."""
    boot = trial.boot
    if boot is None:
        yield from (Left(v.boot) for v in state.visits if v.live)
        if trial.commit in unbuildable:
            yield Built(trial.commit, False, 20.0, failure="error: simulated")
            return
        if (trial.commit, trial.layout) not in state.binaries:
            yield Built(trial.commit, True, 20.0, f"k{trial.commit}.{trial.layout}", trial.layout)
        boot = f"b{number}"
        ok = value(trial.commit, 0) is not None
        booted = Booted(boot, trial.commit, "t", ok, 5.0, float(number), trial.layout, trial.purpose)
        yield replace(booted, fresh_seed=trial.fresh_seed)
        if not ok:
            return
    begun = sum(len(v.runs) for v in state.boots if v.boot == boot)
    for i in range(begun, begun + trial.runs):
        y = value(trial.commit, i)
        assert y is not None
        yield Ran(boot, i, {"real": y}, 1.0, number + (i - begun) / 100)


def step(at: int, effect: float = 0.1) -> Callable[[int, int], float]:
    return lambda commit, run: 100.0 * (1 + effect * (commit >= at)) * (1 + 0.001 * ((run * 7919) % 5 - 2))


@dataclass(frozen=True)
class Seen:
    """One boot of a commit, and what its runs read."""

    commit: int
    values: Sequence[float] = (100.0, 100.1, 99.9)
    purpose: Purpose = "search"
    layout: int = 0
    testbed: str = "t"
    live: bool = False
    fresh_seed: bool = False


def records_of(visits: Sequence[Seen]) -> list[Record]:
    """Return the records of these visits, with a build before the first boot of each binary."""
    records: list[Record] = []
    built: set[tuple[int, int]] = set()
    for b, v in enumerate(visits):
        if (v.commit, v.layout) not in built:
            built.add((v.commit, v.layout))
            records.append(Built(v.commit, True, 20.0, f"k{v.commit}.{v.layout}", v.layout))
        booted = Booted(f"b{b}", v.commit, v.testbed, True, 5.0, float(b), v.layout, v.purpose)
        records.append(replace(booted, fresh_seed=v.fresh_seed))
        records += [Ran(f"b{b}", k, {"real": y}, 1.0, b + k / 100) for k, y in enumerate(v.values)]
        if not v.live:
            records.append(Left(f"b{b}"))
    return records


def context_of(
    graph: CommitGraph,
    visits: Sequence[Seen] = (),
    *,
    wanted: Goal | None = None,
    records: Sequence[Record] = (),
    pending: tuple[Measure, ...] = (),
    idle: str | None = None,
) -> tuple[SearchContext, PlannerCache]:
    """Return what a planner looks at after these visits and records, and its cache."""
    everything = [*records_of(visits), *records]
    cache = PlannerCache(graph, None)
    state = fold(graph, wanted or goal(), everything, pending=pending, idle=idle)
    return cache.context(state), cache


# --- planners that play a script, for tests of the simulator and of its judgement ---

ZERO = Interval(0.0, 0.0, 0.0)
CENTRE = Scenario(commits=64, culprits=(Culprit(2.0, 40),), lab=LabModel(run_noise=0.5))


Action = Measure | Callable[[State], Measure]


class Scripted:
    """Plays actions in order, then concludes."""

    def __init__(self, actions: Iterable[Action], conclusion: Conclusion | None = None) -> None:
        self.actions = iter(actions)
        self.conclusion = conclusion or Conclusion(Ending.INCONCLUSIVE, "end of the script")
        self.states: list[State] = []

    def next(self, state: State) -> Answer:
        self.states.append(state)
        action: Action | Conclusion = next(self.actions, self.conclusion)
        return action(state) if callable(action) else action


def visit(commit: int, runs: int, purpose: Purpose = "search") -> Measure:
    return Measure(commit, runs, purpose, "because", None)


def stay(runs: int) -> Callable[[State], Measure]:
    return lambda state: Measure(state.visits[-1].commit, runs, "search", "go on", boot=state.visits[-1].boot)


def answer(*commits: int | tuple[int, ...], ending: Ending = Ending.CULPRIT) -> Conclusion:
    findings = tuple(Finding((c,) if isinstance(c, int) else c, ZERO, 0.97) for c in commits)
    return Conclusion(ending, "", findings, confidence=0.97)


def seen_on_unequal_testbeds(boots: int = 8, ratio: float = 8.0) -> list[Seen]:
    """Return boots of two commits on 'loud' and 'quiet': loud's runs and boots scatter so much more."""
    random = np.random.default_rng(3)
    return [
        Seen(
            commit,
            tuple(level * (1 + sd * (random.standard_normal() + random.standard_normal(4)))),
            testbed=name,
        )
        for _ in range(boots)
        for name, level, sd in (("loud", 200.0, 0.001 * ratio), ("quiet", 100.0, 0.001))
        for commit in (1, 2)
    ]


def make_evidence(
    log_e_change: float,
    log_e_below: float,
    low: float,
    estimate: float,
    high: float,
    sd: float,
    p_reaches_threshold: float,
    boot_spreads: tuple[tuple[float, float], ...] = (),
) -> Evidence:
    """Return a result with this interval; the rest as in Evidence."""
    return Evidence(
        log_e_change, log_e_below, estimate, sd, lambda: (low, high), p_reaches_threshold, boot_spreads
    )
