"""The measurements of one commit in a bisection, as sets of samples: one a testbed, all its metrics."""

from __future__ import annotations

from collections.abc import Mapping

from bisector.model.facts import MonitorValue
from bisector.model.goal import Metric
from bisector.model.machines.firmware import TESTBED
from bisector.model.records import Ran
from bisector.model.state import Visit
from bisector.report import repetition_pattern
from bisector.report.repetition_pattern import NO_PATTERN, RepetitionPattern
from bisector.report.report_model import Material
from bisector.stats.samples import SampleSeries, SampleSet

_SECTIONS = ("text", "data", "bss")


def sets(material: Material, index: int, name: str, metrics: Mapping[str, Metric]) -> list[SampleSet]:
    """Return the commit's samples; warm-ups, flagged runs and discarded boots are no samples.

    Sets have the name of their testbed where the bisection measured on several, on whichever of them this
    commit was: numbers of two machines do not compare.

    Counters of the monitor perf-stat are metrics 'perf-stat/NAME': means of boots' own runs. metrics:
    name -> its definition in the workload. Empty if the commit was never measured. Under the instruction
    clock samples are without what their repetition explains (`repetition_pattern`); a note says so.
    """
    boots: dict[str, list[list[Ran]]] = {}
    used: set[str] = set()
    for visit in material.state.visits:
        runs = _counted_runs(visit)
        if runs and not visit.failed:
            used.add(visit.testbed)
            if visit.commit == index:
                boots.setdefault(visit.testbed, []).append(runs)
    by_instructions = material.goal.clock == "instructions"
    compared = [_counted_runs(v) for v in material.state.visits if by_instructions and not v.failed]
    read = {name for boot in compared for run in boot for name in run.values}
    patterns = {n: _pattern(compared, n) for n in read}
    sizes = material.kernel(index).sizes
    known = {n: int(sizes[n]) for n in _SECTIONS if n in sizes}
    out = []
    for testbed, measured in sorted(boots.items()):
        names = dict.fromkeys(n for boot in measured for run in boot for n in run.values)
        series = {n: _series(measured, n, metrics.get(n), patterns.get(n, NO_PATTERN)) for n in names}
        as_of = dict.fromkeys(
            words
            for n, one in series.items()
            if (words := patterns.get(n, NO_PATTERN).words)
            and one != _series(measured, n, metrics.get(n), NO_PATTERN)
        )
        notes = tuple(f"boots ran differently often: numbers are{words}, not as read" for words in as_of)
        series |= _counted(material, index, testbed)
        where = testbed if len(used) > 1 else ""
        facts = {**material.facts(index, testbed), TESTBED: testbed}
        out.append(
            SampleSet(name, series, where, notes=notes, sizes=known, facts=facts, modelled=material.modelled)
        )
    if not out and known:
        out.append(SampleSet(name, {}, sizes=known))
    return out


def _counted(material: Material, index: int, testbed: str) -> dict[str, SampleSeries]:
    """Return the counters of perf stat on a testbed, a mean of each boot; of a single one with perf's own +-.

    What perf calls +- is of the runs of one boot: it says nothing of what boots differ by.
    """
    seen: dict[str, list[MonitorValue]] = {}
    for visit in material.state.boots:
        if (visit.commit, visit.testbed) != (index, testbed) or material.state.is_discarded(visit):
            continue
        for counter in (c for r in visit.monitors if r.monitor == "perf-stat" for c in r.seen):
            seen.setdefault(f"perf-stat/{counter.name}", []).append(counter)
    return {
        name: SampleSeries(
            tuple((one.value,) for one in boots),
            boots[0].unit,
            None,
            boots[0].error if len(boots) == 1 else None,
        )
        for name, boots in seen.items()
    }


def _counted_runs(visit: Visit) -> list[Ran]:
    return sorted((run for run in visit.runs if not run.warmup and not run.flags), key=lambda r: r.index)


def _pattern(boots: list[list[Ran]], name: str) -> RepetitionPattern:
    """Return what repetitions differ by in a metric."""
    return repetition_pattern.find(
        [(run.index, run.values[name]) for run in boot if name in run.values] for boot in boots
    )


def _series(
    boots: list[list[Ran]], name: str, metric: Metric | None, pattern: RepetitionPattern
) -> SampleSeries:
    values = tuple(
        tuple(pattern.level(r.index, r.values[name]) for r in boot if name in r.values) for boot in boots
    )
    return SampleSeries(values, metric.unit if metric else "", metric.better if metric else None)
