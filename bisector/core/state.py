"""State: the graph, the goal and the records so far, folded into what a planner looks at.

Resume, web page, report and replay all fold the same records with `fold`; nothing else holds state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bisector.core.model import (
    Booted,
    Built,
    CommitGraph,
    Discarded,
    Goal,
    Left,
    Marked,
    Measure,
    Purpose,
    Ran,
    Record,
    RunFailed,
)


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


@dataclass(frozen=True, slots=True)
class State:
    """What a planner decides from. `pending` holds actions now being carried out on other testbeds.

    binaries: (commit, layout) -> id of the kernel binary; untestable: commit -> why;
    marks: commit -> 'good' | 'bad' (skips are in untestable); idle: the testbed that asks, if it matters.
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
    )
