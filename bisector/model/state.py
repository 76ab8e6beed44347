"""State: the graph, the goal and the records so far, folded into what a planner looks at.

Resume, web page, report and replay all fold the same records with `fold`; nothing else holds state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from bisector.model.records import (
    Booted,
    Built,
    CommitGraph,
    Discarded,
    Goal,
    Irrelevant,
    Left,
    Marked,
    Measure,
    Purpose,
    Ran,
    Record,
    RunFailed,
)

IRRELEVANT_WEIGHT = 1e-4
"""Prior weight of a commit that cannot change the kernel; an ordinary one has 1. If a build has read more
than it tells, the evidence still leads there; 100,000 such commits weigh no more than ten ordinary ones."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One successful boot with its samples of the deciding metric.

    samples: (repetition index, value) of the clean runs, in order; flagged: the suspicious ones kept out.
    at: seconds since the epoch of each clean sample, parallel to samples.
    """

    boot: str
    commit: int
    testbed: str
    layout: int
    purpose: Purpose
    started: float
    samples: tuple[tuple[int, float], ...] = ()
    at: tuple[float, ...] = ()
    flagged: tuple[tuple[int, float], ...] = ()
    live: bool = True
    failed: bool = False


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

    binaries: (commit, layout) -> id of the kernel binary; untestable: commit -> why;
    marks: commit -> 'good' | 'bad' (skips are in untestable); idle: the testbed that asks, if it matters;
    discarded: some data were thrown away; no_layouts: another code layout of a commit failed to build.
    """

    graph: CommitGraph
    goal: Goal
    records: tuple[Record, ...] = ()
    visits: tuple[Visit, ...] = ()
    binaries: Mapping[tuple[int, int], str] = field(default_factory=dict)
    untestable: Mapping[int, str] = field(default_factory=dict)
    marks: Mapping[int, str] = field(default_factory=dict)
    costs: Costs = field(default_factory=Costs)
    pending: tuple[Measure, ...] = ()
    idle: str | None = None
    discarded: bool = False
    no_layouts: bool = False


def fold(
    graph: CommitGraph,
    goal: Goal,
    records: Iterable[Record],
    *,
    pending: tuple[Measure, ...] = (),
    idle: str | None = None,
) -> State:
    """Fold records, oldest first, into a State. The same records always give the same state."""
    kept = tuple(records)
    name = goal.metric.name
    graph = _pruned(graph, kept)
    untestable = dict(graph.untestable)
    binaries: dict[tuple[int, int], str] = {}
    marks: dict[int, str] = {}
    boots: dict[str, Booted] = {}
    samples: dict[str, list[tuple[int, float, float]]] = {}
    flagged: dict[str, list[tuple[int, float]]] = {}
    left: set[str] = set()
    failed: set[str] = set()
    dropped_boots: set[str] = set()
    dropped_testbeds: set[str] = set()
    build_s: list[float] = []
    boot_s: list[float] = []
    run_s: list[float] = []
    for record in kept:
        match record:
            case Built():
                if record.ok:
                    binaries[record.commit, record.layout] = record.binary
                    if not record.cached:
                        build_s.append(record.seconds)
                elif record.layout == 0:
                    untestable[record.commit] = f"does not build: {record.failure}"
            case Booted():
                if record.ok:
                    boots[record.boot] = record
                    boot_s.append(record.seconds)
                else:
                    untestable[record.commit] = f"does not boot: {record.failure}"
            case Ran():
                run_s.append(record.seconds)
                if record.warmup or name not in record.values:
                    continue
                value = record.values[name]
                if record.flags:
                    flagged.setdefault(record.boot, []).append((record.index, value))
                else:
                    samples.setdefault(record.boot, []).append((record.index, value, record.at))
            case RunFailed():
                failed.add(record.boot)
                left.add(record.boot)
                if record.boot in boots:
                    untestable[boots[record.boot].commit] = f"workload fails: {record.failure}"
            case Left():
                left.add(record.boot)
            case Marked():
                if record.verdict == "skip":
                    untestable[record.commit] = f"skipped by the user: {record.note}".rstrip(": ")
                else:
                    marks[record.commit] = record.verdict
            case Discarded():
                (dropped_testbeds if record.kind == "testbed" else dropped_boots).add(record.name)
            case Irrelevant():
                pass  # the graph has it
    visits = tuple(
        Visit(
            boot=b.boot,
            commit=b.commit,
            testbed=b.testbed,
            layout=b.layout,
            purpose=b.purpose,
            started=b.at,
            samples=tuple((i, v) for i, v, _ in samples.get(b.boot, ())),
            at=tuple(t for _, _, t in samples.get(b.boot, ())),
            flagged=tuple(flagged.get(b.boot, ())),
            live=b.boot not in left,
            failed=b.boot in failed,
        )
        for b in boots.values()
        if b.boot not in dropped_boots and b.testbed not in dropped_testbeds
    )
    return State(
        graph=graph,
        goal=goal,
        records=kept,
        visits=visits,
        binaries=binaries,
        untestable=untestable,
        marks=marks,
        costs=Costs(tuple(build_s), tuple(boot_s), tuple(run_s)),
        pending=pending,
        idle=idle,
        discarded=bool(dropped_boots or dropped_testbeds),
        no_layouts=any(isinstance(r, Built) and r.layout and not r.ok for r in kept),
    )


def extend(
    state: State,
    records: Iterable[Record],
    *,
    pending: tuple[Measure, ...] = (),
    idle: str | None = None,
) -> State:
    """Return fold(graph, goal, state.records + records) in the time of the new records alone.

    A boot's id is used once and its `Booted` comes before its runs, as the engine records them. Where a
    testbed or a boot was discarded everything is folded again: that reaches back.
    """
    new = tuple(records)
    kept = state.records + new
    if state.discarded or any(isinstance(r, Discarded) for r in new):
        return fold(state.graph, state.goal, kept, pending=pending, idle=idle)
    visits = list(state.visits)
    untestable, binaries, marks = dict(state.untestable), dict(state.binaries), dict(state.marks)
    name = state.goal.metric.name
    builds: list[float] = []
    boots: list[float] = []
    runs: list[float] = []

    def place(boot: str) -> int | None:
        return next((i for i in range(len(visits) - 1, -1, -1) if visits[i].boot == boot), None)

    for record in new:
        match record:
            case Built():
                if record.ok:
                    binaries[record.commit, record.layout] = record.binary
                    if not record.cached:
                        builds.append(record.seconds)
                elif record.layout == 0:
                    untestable[record.commit] = f"does not build: {record.failure}"
            case Booted() if record.ok:
                visits.append(
                    Visit(
                        boot=record.boot,
                        commit=record.commit,
                        testbed=record.testbed,
                        layout=record.layout,
                        purpose=record.purpose,
                        started=record.at,
                    )
                )
                boots.append(record.seconds)
            case Booted():
                untestable[record.commit] = f"does not boot: {record.failure}"
            case Ran():
                runs.append(record.seconds)
                i = place(record.boot)
                if i is None or record.warmup or name not in record.values:
                    continue
                sample = (record.index, record.values[name])
                v = visits[i]
                if record.flags:
                    visits[i] = replace(v, flagged=(*v.flagged, sample))
                else:
                    visits[i] = replace(v, samples=(*v.samples, sample), at=(*v.at, record.at))
            case RunFailed():
                i = place(record.boot)
                if i is not None:
                    visits[i] = replace(visits[i], live=False, failed=True)
                    untestable[visits[i].commit] = f"workload fails: {record.failure}"
            case Left():
                i = place(record.boot)
                if i is not None:
                    visits[i] = replace(visits[i], live=False)
            case Marked():
                if record.verdict == "skip":
                    untestable[record.commit] = f"skipped by the user: {record.note}".rstrip(": ")
                else:
                    marks[record.commit] = record.verdict
            case Irrelevant():
                pass  # the graph has it
            case Discarded():  # handled above
                raise AssertionError(record)
    costs = state.costs
    return State(
        graph=_pruned(state.graph, new),
        goal=state.goal,
        records=kept,
        visits=tuple(visits),
        binaries=binaries,
        untestable=untestable,
        marks=marks,
        costs=Costs(costs.builds + tuple(builds), costs.boots + tuple(boots), costs.runs + tuple(runs)),
        pending=pending,
        idle=idle,
        no_layouts=state.no_layouts or any(isinstance(r, Built) and r.layout and not r.ok for r in new),
    )


def _pruned(graph: CommitGraph, records: tuple[Record, ...]) -> CommitGraph:
    """Return the graph with the weights that the latest `Irrelevant` gives; the same object without one."""
    found = next((record for record in reversed(records) if isinstance(record, Irrelevant)), None)
    return graph if found is None else reweight_irrelevant(graph, found)


def reweight_irrelevant(graph: CommitGraph, irrelevant: Irrelevant) -> CommitGraph:
    """Return the graph with IRRELEVANT_WEIGHT for these commits and the ordinary weight for earlier ones.

    It is the same object where nothing changes.
    """
    others = {commit: weight for commit, weight in graph.weights.items() if weight != IRRELEVANT_WEIGHT}
    weights = {**others, **dict.fromkeys(irrelevant.commits, IRRELEVANT_WEIGHT)}
    return graph if weights == graph.weights else replace(graph, weights=weights)
