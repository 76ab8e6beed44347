"""Several sets side by side, testbed by testbed: every comparison with the base, and what does not agree.

A sheet is what every format of a comparison is printed from; it knows nothing of layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bisector.model.records import Direction
from bisector.stats.comparison import Comparison, Summary, compare_series, summarise
from bisector.stats.samples import SampleSet, Series, direction


@dataclass(frozen=True, slots=True)
class Row:
    """One metric on one testbed. cells: one a column, None where that set has no number for it.

    comparisons: with the base, one for each column but the first, None where one of the two has no number.
    why: for columns without a number, what is known about it.
    """

    metric: str
    unit: str
    better: Direction
    cells: tuple[Summary | None, ...]
    comparisons: tuple[Comparison | None, ...]
    series: tuple[Series | None, ...]
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """One testbed: its columns' sets in order, the first being the base, and a row for each metric."""

    testbed: str
    sets: tuple[SampleSet, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """The whole comparison. names: of the columns. same: the sets are one kernel (A/A)."""

    names: tuple[str, ...]
    groups: tuple[Group, ...]
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
) -> Sheet:
    """Put columns side by side; a column is one kernel, its sets are one a testbed.

    metrics: only these, all if empty. Raises ValueError where no metric is in two columns of one testbed.
    """
    names = tuple(column[0].name for column in columns)
    testbeds = list(dict.fromkeys(s.testbed for column in columns for s in column))
    groups = []
    for testbed in testbeds:
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
        groups.append(Group(testbed, sets, tuple(r for r in rows if any(r.cells))))
    sized = any(sum(1 for s in g.sets if s.sizes) > 1 for g in groups)
    if not sized and not any(c for g in groups for r in g.rows for c in r.comparisons):
        raise ValueError("there is no metric that two of the sets have in common")
    if same:
        sentences = _same_kernel(groups)
    else:
        sentences = [s for g in groups for s in _metrics_disagree(g, names)]
        sentences += _testbeds_disagree(groups, names)
    warnings = _merged([(g.testbed, w) for g in groups for w in _warnings(g)], len(groups))
    return Sheet(names, tuple(groups), alpha, threshold, same, tuple(sentences), tuple(warnings))


def _row(
    metric: str, sets: Sequence[SampleSet], names: Sequence[str], alpha: float, threshold: float, seed: int
) -> Row:
    series = tuple(s.series.get(metric) for s in sets)
    present = [s for s in series if s is not None and s.values]
    cells = tuple(
        summarise(n, s) if s is not None and s.values else None for n, s in zip(names, series, strict=True)
    )
    base = series[0]
    comparisons = tuple(
        compare_series(
            metric,
            base,
            other,
            threshold=threshold,
            alpha=alpha,
            seed=seed,
            labels=(names[0], name),
        )
        if base is not None and base.values and other is not None and other.values
        else None
        for name, other in zip(names[1:], series[1:], strict=True)
    )
    why = tuple(
        "" if cell is not None else s.missing.get(metric, "not measured")
        for cell, s in zip(cells, sets, strict=True)
    )
    said = next((s for s in present if s.better is not None), present[0] if present else Series(()))
    unit = next((s.unit for s in present if s.unit), "")
    return Row(metric, unit, direction(metric, said), cells, comparisons, series, why)


def _counts(comparison: Comparison, threshold: float) -> int:
    """Return 1 for worse, -1 for better, 0 for neither; without a test the means alone must do."""
    if comparison.verdict == "untested":
        change = comparison.mean.estimate
        if abs(change) <= threshold:
            return 0
        return 1 if (change > 0) == (comparison.better == "lower") else -1
    return {"worse": 1, "better": -1}.get(comparison.verdict, 0)


def _told(comparison: Comparison) -> str:
    untested = ", not tested" if comparison.verdict == "untested" else ""
    change = comparison.mean if comparison.verdict == "untested" else comparison.effect
    return f"{comparison.name} {100 * change.estimate:+.2f}% ({comparison.word}{untested})"


def _metrics_disagree(group: Group, names: Sequence[str]) -> list[str]:
    """Say where one column is better by one metric and worse by another."""
    out = []
    for column, name in enumerate(names[1:]):
        found = [c for r in group.rows if (c := r.comparisons[column]) is not None]
        better = [c for c in found if _counts(c, 0.0) < 0]
        worse = [c for c in found if _counts(c, 0.0) > 0]
        if better and worse:
            where = f"on {group.testbed}, " if group.testbed else ""
            out.append(
                f"The metrics disagree: {where}{name} is better by {_listed(better)}, "
                f"but worse by {_listed(worse)}."
            )
    return out


def _listed(found: Sequence[Comparison], most: int = 3) -> str:
    told = sorted(found, key=lambda c: -abs(c.mean.estimate))
    more = f" and {len(told) - most} more" if len(told) > most else ""
    return ", ".join(_told(c) for c in told[:most]) + more


def _testbeds_disagree(groups: Sequence[Group], names: Sequence[str]) -> list[str]:
    """Say which metric moves one way on one testbed and the other way, or not, on another."""
    out = []
    for metric in dict.fromkeys(r.metric for g in groups for r in g.rows):
        for column, name in enumerate(names[1:]):
            sides: dict[int, list[str]] = {}
            for group in groups:
                row = next((r for r in group.rows if r.metric == metric), None)
                found = row.comparisons[column] if row is not None else None
                if found is not None:
                    change = found.mean if found.verdict == "untested" else found.effect
                    sides.setdefault(_counts(found, 0.0), []).append(
                        f"{group.testbed} ({100 * change.estimate:+.2f}%)"
                    )
            if 1 in sides and -1 in sides:
                out.append(
                    f"The testbeds disagree about {metric}: {name} is worse on {', '.join(sides[1])}, "
                    f"better on {', '.join(sides[-1])}."
                )
            elif len(sides) > 1:
                way = "worse" if 1 in sides else "better"
                out.append(
                    f"{metric}: {name} is {way} on {', '.join(sides[1 if 1 in sides else -1])}; "
                    f"nothing is shown on {', '.join(sides[0])}."
                )
    return out


def _same_kernel(groups: Sequence[Group]) -> list[str]:
    """Say how far a kernel differs from itself: what two kernels differ by must be more than that."""
    found = [c for g in groups for r in g.rows for c in r.comparisons if c is not None]
    if not found:
        return []
    shown = [c for c in found if c.significant]
    widest = max(found, key=lambda c: abs(c.mean.estimate))
    out = [
        f"One kernel against itself: its means differ by up to {100 * abs(widest.mean.estimate):.2f}% "
        f"({widest.name}); a change between kernels must be larger than that."
    ]
    if shown:
        out.append(
            f"{len(shown)} of {len(found)} comparisons of the kernel with itself are significant "
            f"({_listed(shown)}): the measurement drifts, or runs that are counted as independent are not."
        )
    return out


def _uneven(found: SampleSet) -> list[str]:
    """Say which metrics are missing in some runs."""
    runs = {name: sum(map(len, s.boots)) for name, s in found.series.items() if not s.published}
    most = max(runs.values(), default=0)
    short = [name for name, n in runs.items() if n < most]
    if not short:
        return []
    more = f" and {len(short) - 3} more" if len(short) > 3 else ""
    told = ", ".join(f"{name} in {runs[name]}" for name in short[:3])
    return [f"{found.name}: not every metric is in all {most} runs: {told}{more}"]


def _merged(told: Sequence[tuple[str, str]], groups: int) -> list[str]:
    """Return each warning once, with the testbeds that it is true of where it is not true of all."""
    where: dict[str, list[str]] = {}
    for testbed, text in told:
        where.setdefault(text, []).append(testbed)
    out = []
    for text, found in where.items():
        places = list(dict.fromkeys(t for t in found if t))
        out.append(f"{', '.join(places)}: {text}" if places and len(places) < groups else text)
    return out


def _warnings(group: Group) -> list[str]:
    out: list[str] = []
    by_text: dict[str, list[str]] = {}
    for row in group.rows:
        for comparison in row.comparisons:
            for text in comparison.warnings if comparison is not None else ():
                by_text.setdefault(text, []).append(row.metric)
        for name, why in zip((s.name for s in group.sets), row.why, strict=True):
            if why:
                by_text.setdefault(f"{name} has no number: {why}", []).append(row.metric)
    for found in group.sets:
        out += _uneven(found)
        out += [f"{found.name}: {note}" for note in found.notes]
        out += [
            f"{found.name}: {metric} has no number: {why}"
            for metric, why in found.missing.items()
            if metric not in {r.metric for r in group.rows}
        ]
    for text, metrics in by_text.items():
        which = list(dict.fromkeys(metrics))
        shown = ", ".join(which[:4]) + (f" and {len(which) - 4} more" if len(which) > 4 else "")
        many = "" if len(which) == len(group.rows) > 1 else f"{shown}: "
        out.append(f"{many}{text}")
    return out
