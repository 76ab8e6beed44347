"""State: the graph, the goal and the records so far, folded into what a planner looks at.

`apply` is the one place that knows what a record changes. Planner, engine, report and replay all reduce the
same records with it; nothing else holds state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Measure, Purpose
from bisector.model.facts import MonitorResult
from bisector.model.goal import Goal, Verdict
from bisector.model.records import (
    Booted,
    Built,
    Discarded,
    Irrelevant,
    Left,
    Marked,
    Ran,
    Record,
    RunFailed,
    SetAside,
    Weighed,
)

IRRELEVANT_WEIGHT = 1e-4
"""Prior weight of a commit that cannot change the kernel; an ordinary one has 1. If a build has read more
than it tells, the evidence still leads there; 100,000 such commits weigh no more than ten ordinary ones."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One boot with everything that was done in it.

    booted: how it began; runs: all of them, in order. samples: (repetition index, value) of the deciding
    metric in the runs that count; at: seconds since the epoch of each sample, parallel to samples; flagged:
    the suspicious runs kept out. live: it can take more runs; failed: the workload failed in it, and that
    counts against the commit; failure says how, or why the kernel did not boot, or, of a boot that has not
    failed, what was tried once more.
    """

    booted: Booted
    runs: tuple[Ran, ...] = ()
    samples: tuple[tuple[int, float], ...] = ()
    at: tuple[float, ...] = ()
    flagged: tuple[tuple[int, float], ...] = ()
    live: bool = True
    failed: bool = False
    failure: str = ""
    monitors: tuple[MonitorResult, ...] = ()

    @property
    def boot(self) -> str:
        """The boot's id."""
        return self.booted.boot

    @property
    def commit(self) -> int:
        """The commit that was booted."""
        return self.booted.commit

    @property
    def testbed(self) -> str:
        """Where it was booted."""
        return self.booted.testbed

    @property
    def layout(self) -> int:
        """The variant of code placement."""
        return self.booted.layout

    @property
    def purpose(self) -> Purpose:
        """What it was booted for."""
        return self.booted.purpose

    @property
    def retried(self) -> str:
        """How the workload failed in a boot that counts against no commit: it was tried once more."""
        return self.failure if self.booted.ok and not self.failed else ""

    @property
    def started(self) -> float:
        """Seconds since the epoch when it began."""
        return self.booted.at


@dataclass(frozen=True, slots=True)
class Costs:
    """Measured seconds of each kind of action so far; empty tuples before the first one."""

    builds: tuple[float, ...] = ()
    boots: tuple[float, ...] = ()
    runs: tuple[float, ...] = ()

    @property
    def total(self) -> float:
        """Seconds of everything so far."""
        return sum(self.builds) + sum(self.boots) + sum(self.runs)


@dataclass(frozen=True, slots=True)
class State:
    """What a planner decides from. `pending` holds actions now being carried out on other testbeds.

    boots: every boot, in order, whatever became of it; visits: the successful ones whose data count.
    binaries: (commit, layout) -> id of the kernel binary; untestable: commit -> why;
    marks: commit -> 'good' | 'bad' (skips are in untestable); idle: the testbed that asks, if it matters;
    discarded_boots, discarded_testbeds: names whose data the user threw away; no_layouts: another code layout
    of a commit failed to build.
    """

    graph: CommitGraph
    goal: Goal
    records: tuple[Record, ...] = ()
    boots: tuple[Visit, ...] = ()
    visits: tuple[Visit, ...] = ()
    binaries: Mapping[tuple[int, int], str] = field(default_factory=dict)
    untestable: Mapping[int, str] = field(default_factory=dict)
    marks: Mapping[int, Verdict] = field(default_factory=dict)
    costs: Costs = field(default_factory=Costs)
    pending: tuple[Measure, ...] = ()
    idle: str | None = None
    discarded_boots: frozenset[str] = frozenset()
    discarded_testbeds: frozenset[str] = frozenset()
    no_layouts: bool = False

    @property
    def discarded(self) -> bool:
        """Whether any data were thrown away."""
        return bool(self.discarded_boots or self.discarded_testbeds)

    def is_discarded(self, visit: Visit) -> bool:
        """Return whether the user threw a boot's data away."""
        return visit.boot in self.discarded_boots or visit.testbed in self.discarded_testbeds


def fold(
    graph: CommitGraph,
    goal: Goal,
    records: Iterable[Record],
    *,
    pending: tuple[Measure, ...] = (),
    idle: str | None = None,
) -> State:
    """Fold records, oldest first, into a State. The same records always give the same state."""
    return extend(State(graph, goal, untestable=graph.untestable), records, pending=pending, idle=idle)


def extend(
    state: State, records: Iterable[Record], *, pending: tuple[Measure, ...] = (), idle: str | None = None
) -> State:
    """Apply records, oldest first; pending and idle are what they are now, whatever they were."""
    return replace(reduce(apply, records, state), pending=pending, idle=idle)


def apply(state: State, record: Record) -> State:
    """Return the state after one more record.

    A boot's id is used once, and its `Booted` comes before its runs, as the engine records them. What names a
    boot that is not there changes nothing but the costs.
    """
    state = replace(state, records=state.records + (record,))
    match record:
        case Built():
            return _apply_build(state, record)
        case Booted():
            return _apply_boot(state, record)
        case Ran():
            return _apply_run(state, record)
        case RunFailed():
            visit = _find(state, record.boot)
            if visit is None:
                return state
            state = _mark_untestable(state, visit.commit, f"workload fails: {record.failure}")
            return _update(state, replace(visit, live=False, failed=True, failure=record.failure))
        case Left():
            visit = _find(state, record.boot)
            if visit is None:
                return state
            monitors, failure = record.monitors or visit.monitors, record.failure or visit.failure
            return _update(state, replace(visit, live=False, monitors=monitors, failure=failure))
        case Marked():
            if record.verdict == "skip":
                why = f"skipped by the user: {record.note}".rstrip(": ")
                return _mark_untestable(state, record.commit, why)
            return replace(state, marks={**state.marks, record.commit: record.verdict})
        case Discarded(kind="testbed"):
            return _count_visits(replace(state, discarded_testbeds=state.discarded_testbeds | {record.name}))
        case Discarded():
            return _count_visits(replace(state, discarded_boots=state.discarded_boots | {record.name}))
        case Irrelevant():
            return replace(state, graph=reweight_irrelevant(state.graph, record))
        case Weighed():
            weights = {**state.graph.weights, **dict(zip(record.commits, record.weights, strict=True))}
            return replace(state, graph=replace(state.graph, weights=weights))
        case SetAside():
            return state


def _apply_build(state: State, record: Built) -> State:
    if record.ok:
        costs = state.costs
        if not record.cached:
            costs = replace(costs, builds=costs.builds + (record.seconds,))
        binaries = {**state.binaries, (record.commit, record.layout): record.binary}
        return replace(state, binaries=binaries, costs=costs)
    if record.layout:
        return replace(state, no_layouts=True)
    return _mark_untestable(state, record.commit, f"does not build: {record.failure}")


def _apply_boot(state: State, record: Booted) -> State:
    visit = Visit(record, live=record.ok, failure=record.failure)
    state = replace(state, boots=state.boots + (visit,))
    if not record.ok:
        return _mark_untestable(state, record.commit, f"does not boot: {record.failure}")
    visits = state.visits if state.is_discarded(visit) else state.visits + (visit,)
    costs = replace(state.costs, boots=state.costs.boots + (record.seconds,))
    return replace(state, visits=visits, costs=costs)


def _apply_run(state: State, record: Ran) -> State:
    state = replace(state, costs=replace(state.costs, runs=state.costs.runs + (record.seconds,)))
    visit = _find(state, record.boot)
    if visit is None:
        return state
    visit = replace(visit, runs=(*visit.runs, record))
    value = record.values.get(state.goal.metric.name)
    if value is not None and not record.warmup:
        sample = (record.index, value)
        if record.flags:
            visit = replace(visit, flagged=(*visit.flagged, sample))
        else:
            visit = replace(visit, samples=(*visit.samples, sample), at=(*visit.at, record.at))
    return _update(state, visit)


def _find(state: State, boot: str) -> Visit | None:
    """Return a boot by its id, the latest first: that is where most records belong."""
    return next((visit for visit in reversed(state.boots) if visit.boot == boot), None)


def _update(state: State, visit: Visit) -> State:
    """Return the state with a boot as it is now."""
    return replace(state, boots=_replace(state.boots, visit), visits=_replace(state.visits, visit))


def _replace(visits: tuple[Visit, ...], visit: Visit) -> tuple[Visit, ...]:
    """Return visits with the one of the same boot replaced, if it is there."""
    for i in range(len(visits) - 1, -1, -1):
        if visits[i].boot == visit.boot:
            return visits[:i] + (visit,) + visits[i + 1 :]
    return visits


def _count_visits(state: State) -> State:
    """Return the state with the visits that count: boots that succeeded and were not thrown away."""
    return replace(state, visits=tuple(v for v in state.boots if v.booted.ok and not state.is_discarded(v)))


def _mark_untestable(state: State, commit: int, why: str) -> State:
    return replace(state, untestable={**state.untestable, commit: why})


def reweight_irrelevant(graph: CommitGraph, irrelevant: Irrelevant) -> CommitGraph:
    """Return the graph with IRRELEVANT_WEIGHT for these commits and the ordinary weight for earlier ones.

    It is the same object where nothing changes.
    """
    others = {commit: weight for commit, weight in graph.weights.items() if weight != IRRELEVANT_WEIGHT}
    weights = {**others, **dict.fromkeys(irrelevant.commits, IRRELEVANT_WEIGHT)}
    return graph if weights == graph.weights else replace(graph, weights=weights)
