"""Several sets side by side, testbed by testbed: every comparison with the base, and what does not agree.

Every format of a comparison is printed from a `ComparisonTable`; the table knows nothing of layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bisector.model.goal import MODELLED, Direction, worse_sign
from bisector.stats.comparison import compare, summarise
from bisector.stats.comparison_result import (
    Comparison,
    SetSummary,
    beyond_chance,
    by_chance_alone,
    relative_change,
    size,
)
from bisector.stats.samples import SampleSeries, SampleSet, direction, models_differ


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One metric on one testbed. cells: one a column, None where that set has no number for it.

    comparisons: with the base, one for each column but the first, None where one of the two has no number, or
    both are of two models.
    why: for columns without a number, what is known about it.
    """

    metric: str
    unit: str
    better: Direction
    cells: tuple[SetSummary | None, ...]
    comparisons: tuple[Comparison | None, ...]
    series: tuple[SampleSeries | None, ...]
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TestbedTable:
    """One testbed: its columns' sets in order, the first being the base, and a row for each metric.

    name: of the testbed, empty where nobody named it.
    """

    name: str
    sets: tuple[SampleSet, ...]
    rows: tuple[ComparisonRow, ...]


@dataclass(frozen=True, slots=True)
class ComparisonTable:
    """The whole comparison. names: of the columns. same: the sets are one kernel (A/A)."""

    names: tuple[str, ...]
    testbeds: tuple[TestbedTable, ...]
    alpha: float
    threshold: float
    same: bool
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]


def build(
    columns: Sequence[Sequence[SampleSet]],
    *,
    metrics: Sequence[str] = (),
    alpha: float = 0.05,
    threshold: float = 0.0,
    seed: int = 0,
    same: bool = False,
) -> ComparisonTable:
    """Put columns side by side; a column is one kernel, its sets are one a testbed.

    metrics: only these, all if empty. Raises ValueError where no metric is in two columns of one testbed.
    """
    names = tuple(column[0].name for column in columns)
    testbeds = []
    for testbed in dict.fromkeys(s.testbed for column in columns for s in column):
        sets = tuple(
            next((s for s in column if s.testbed == testbed), SampleSet(column[0].name, {}, testbed))
            for column in columns
        )
        known = list(dict.fromkeys(name for s in sets for name in (*s.series, *s.missing)))
        rows = [
            _row(name, sets, names, alpha, threshold, seed)
            for name in known
            if not metrics or name in metrics
        ]
        testbeds.append(TestbedTable(testbed, sets, tuple(r for r in rows if any(r.cells))))
    sized = any(sum(1 for s in t.sets if s.sizes) > 1 for t in testbeds)
    if not sized and not any(c for t in testbeds for r in t.rows for c in r.comparisons):
        two_models = [text for t in testbeds for text in _two_models(t)]
        if two_models:
            raise ValueError(two_models[0])
        on = f" on one testbed ({', '.join(t.name or '-' for t in testbeds)})" if len(testbeds) > 1 else ""
        raise ValueError(f"there is no metric that two of the sets have in common{on}")
    every = [c for t in testbeds for r in t.rows for c in r.comparisons if c is not None]
    if same:
        sentences = _same_kernel(every, alpha)
    else:
        sentences = [s for t in testbeds for s in _metrics_disagree(t, names, alpha)]
        sentences += _testbeds_disagree(testbeds, names)
    sentences += _modelled(testbeds)
    warnings = _merge([(t.name, w) for t in testbeds for w in _warnings(t)], len(testbeds))
    warnings += filter(None, [by_chance_alone(every, alpha)])
    return ComparisonTable(names, tuple(testbeds), alpha, threshold, same, tuple(sentences), tuple(warnings))


def _row(
    metric: str, sets: Sequence[SampleSet], names: Sequence[str], alpha: float, threshold: float, seed: int
) -> ComparisonRow:
    series = tuple(s.series.get(metric) for s in sets)
    present = [s for s in series if s is not None and s.values]
    cells = tuple(
        summarise(n, s) if s is not None and s.values else None for n, s in zip(names, series, strict=True)
    )
    base = series[0]
    comparisons = tuple(
        compare(metric, base, other, threshold=threshold, alpha=alpha, seed=seed, summaries=(cells[0], cell))
        if base is not None
        and other is not None
        and cells[0] is not None
        and cell is not None
        and not (base.unit.startswith(MODELLED) and models_differ(sets[0], one))
        else None
        for cell, other, one in zip(cells[1:], series[1:], sets[1:], strict=True)
    )
    why = tuple(
        "" if cell is not None else s.missing.get(metric, "not measured")
        for cell, s in zip(cells, sets, strict=True)
    )
    judged = next((s for s in present if s.better is not None), present[0] if present else SampleSeries(()))
    unit = next((s.unit for s in present if s.unit), "")
    return ComparisonRow(metric, unit, direction(metric, judged), cells, comparisons, series, why)


def _judge(comparison: Comparison) -> int:
    """Return 1 for worse, -1 for better, 0 for neither; without a test, by the means alone."""
    if comparison.verdict == "untested":
        change = relative_change(comparison)
        return 0 if change == 0 else 1 if change * worse_sign(comparison.better) > 0 else -1
    return {"worse": 1, "better": -1}.get(comparison.verdict, 0)


def _metrics_disagree(testbed: TestbedTable, names: Sequence[str], alpha: float) -> list[str]:
    """Say where one column is better by one metric and worse by another, by more than chance among many."""
    out = []
    for column, name in enumerate(names[1:]):
        every = [c for r in testbed.rows if (c := r.comparisons[column]) is not None]
        found = [*beyond_chance(every, alpha), *(c for c in every if c.verdict == "untested")]
        better = [c for c in found if _judge(c) < 0]
        worse = [c for c in found if _judge(c) > 0]
        if better and worse:
            where = f"on {testbed.name}, " if testbed.name else ""
            out.append(
                f"The metrics disagree: {where}{name} is better by {_list(better)}, "
                f"but worse by {_list(worse)}."
            )
    return out


def _list(found: Sequence[Comparison]) -> str:
    """Return the metrics with the largest changes, each with its change."""
    largest = sorted(found, key=lambda c: -abs(c.mean.estimate))
    return _shorten([_describe(c) for c in largest], 3)


def _describe(comparison: Comparison) -> str:
    untested = ", not tested" if comparison.verdict == "untested" else ""
    return f"{comparison.name} {size(comparison)} ({comparison.word}{untested})"


def _shorten(items: Sequence[str], most: int) -> str:
    """Return 'a, b, c and 2 more'."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def _modelled(testbeds: Sequence[TestbedTable]) -> list[str]:
    """Name the numbers that were not measured: their unit may stand in no column of a table."""
    rows = [row for testbed in testbeds for row in testbed.rows]
    names = dict.fromkeys(row.metric for row in rows if row.unit.startswith(MODELLED))
    if not names:
        return []
    models = dict.fromkeys(s.modelled for testbed in testbeds for s in testbed.sets if s.modelled)
    which = f" The model{' is' if len(models) == 1 else 's are'} of {' and of '.join(models)}."
    return [f"Of a model, never measured: {', '.join(names)}.{which if models else ''}"]


def _two_models(testbed: TestbedTable) -> list[str]:
    """Say which numbers were not compared, because two models are no change of the kernel."""
    base = testbed.sets[0]
    names = [row.metric for row in testbed.rows if row.unit.startswith(MODELLED)]
    return [
        f"{_shorten(names, 4)}: {one.name} is of another model than {base.name}, they do not compare: "
        f"{base.name}'s is of {base.modelled}; {one.name}'s of {one.modelled}"
        for one in testbed.sets[1:]
        if names and models_differ(base, one)
    ]


def _testbeds_disagree(testbeds: Sequence[TestbedTable], names: Sequence[str]) -> list[str]:
    """Say which metric moves one way on one testbed and the other way, or not, on another."""
    out = []
    for metric in dict.fromkeys(r.metric for t in testbeds for r in t.rows):
        for column, name in enumerate(names[1:]):
            where: dict[int, list[str]] = {}
            for testbed in testbeds:
                row = next((r for r in testbed.rows if r.metric == metric), None)
                found = row.comparisons[column] if row is not None else None
                if found is not None:
                    where.setdefault(_judge(found), []).append(f"{testbed.name} ({size(found)})")
            if 1 in where and -1 in where:
                out.append(
                    f"The testbeds disagree about {metric}: {name} is worse on {', '.join(where[1])}, "
                    f"better on {', '.join(where[-1])}."
                )
            elif len(where) > 1:
                way = "worse" if 1 in where else "better"
                out.append(
                    f"{metric}: {name} is {way} on {', '.join(where[1 if 1 in where else -1])}; "
                    f"nothing is shown on {', '.join(where[0])}."
                )
    return out


def _same_kernel(found: Sequence[Comparison], alpha: float) -> list[str]:
    """Say how far a kernel differs from itself: what two kernels differ by must be more than that."""
    if not found:
        return []
    significant = [c for c in found if c.significant]
    widest = max(found, key=lambda c: abs(c.mean.estimate))
    out = [
        f"One kernel against itself: its means differ by up to {size(widest, mean=True).lstrip('+-')} "
        f"({widest.name}); a change between kernels must be larger than that."
    ]
    if significant:
        why = "the measurement drifts, or runs that are counted as independent are not"
        if not beyond_chance(found, alpha):
            why = "no more than chance shows among so many"
        out.append(
            f"{len(significant)} of {len(found)} comparisons of the kernel with itself are significant "
            f"({_list(significant)}): {why}."
        )
    return out


def _uneven(found: SampleSet) -> list[str]:
    """Say which metrics are missing in some runs."""
    runs = {name: sum(map(len, s.boots)) for name, s in found.series.items() if not s.published}
    most = max(runs.values(), default=0)
    short = [f"{name} in {n}" for name, n in runs.items() if n < most]
    return [f"{found.name}: not every metric is in all {most} runs: {_shorten(short, 3)}"] if short else []


def _merge(found: Sequence[tuple[str, str]], testbeds: int) -> list[str]:
    """Return each warning once, with the testbeds that it is true of where it is not true of all."""
    where: dict[str, list[str]] = {}
    for testbed, text in found:
        where.setdefault(text, []).append(testbed)
    out = []
    for text, named in where.items():
        places = list(dict.fromkeys(t for t in named if t))
        out.append(f"{', '.join(places)}: {text}" if places and len(places) < testbeds else text)
    return out


def _warnings(testbed: TestbedTable) -> list[str]:
    """Return the warnings of all comparisons, each once with its metrics, and those of the sets."""
    out: list[str] = []
    metrics_of: dict[str, list[str]] = {}
    for row in testbed.rows:
        for comparison in row.comparisons:
            for text in comparison.warnings if comparison is not None else ():
                metrics_of.setdefault(text, []).append(row.metric)
        for found, why in zip(testbed.sets, row.why, strict=True):
            if why:
                metrics_of.setdefault(f"{found.name} has no number: {why}", []).append(row.metric)
    shown = {row.metric for row in testbed.rows}
    out += _two_models(testbed)
    for found in testbed.sets:
        out += _uneven(found)
        out += [f"{found.name}: {note}" for note in found.notes]
        out += [
            f"{found.name}: {metric} has no number: {why}"
            for metric, why in found.missing.items()
            if metric not in shown
        ]
    for text, metrics in metrics_of.items():
        which = list(dict.fromkeys(metrics))
        every = len(which) == len(testbed.rows) > 1
        out.append(text if every else f"{_shorten(which, 4)}: {text}")
    return out
