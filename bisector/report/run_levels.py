"""Runs made by hand, summed up for a person: level, spread, range, and what so many runs can show."""

from __future__ import annotations

from collections.abc import Container, Sequence

from bisector.model.goal import Metric
from bisector.report import phrases, pictures
from bisector.report.columns import fit, wrap
from bisector.stats.run_summary import RunSummary, sum_up

_HEADER = ("METRIC", "MEAN", "SPREAD", "RANGE", "RUNS")


_LEAST_DRAWN = 4
"""Runs of a series that a picture says more of than the range."""


def lines(
    series: Sequence[tuple[Metric, Sequence[float]]], deciding: Container[str], width: int | None
) -> list[str]:
    """Return a table of the metrics and what follows from it.

    series: each metric with a value a run. deciding: names of metrics of which it is said what can be shown.
    width: characters of a line, or None.
    """
    rows, notes, drawn = [], [], []
    for metric, values in series:
        one = sum_up(metric, values)
        name, unit, sd = one.metric.name, one.metric.unit, one.sd or 0.0
        share = f" ({sd / abs(one.mean):.2%})" if one.mean else ""
        rows.append(
            (
                name,
                f"{phrases.number(one.mean)} {unit}".rstrip(),
                f"± {phrases.number(sd, one.mean)}{share}",
                f"{phrases.number(one.low, one.mean)} .. {phrases.number(one.high, one.mean)}",
                str(one.runs),
            )
        )
        if one.far:
            # By value: warm-ups and flagged runs, which are not counted here, have lines of their own.
            far = ", ".join(phrases.number(values[run - 1], one.mean) for run in one.far)
            notes.append(f"{name}: far off: {far} {unit}".rstrip())
        if name in deciding and (note := what_is_shown(one)):
            notes.append(note)
            if len(values) >= _LEAST_DRAWN and one.low < one.high:
                drawn.append(f"{name}  {pictures.sparkline(values)}  in the order of runs")
    notes.append("runs of one boot; what boots differ by comes on top ('perfbisect calibrate' measures it)")
    table = fit(_HEADER, rows, width, dropped=["RUNS", "RANGE"])
    return [*table, *drawn, *(line for note in notes for line in wrap(f"note: {note}", width))]


def of_nothing(one: RunSummary) -> bool:
    """Return whether the threshold is a share of a level that is zero."""
    return one.mean == 0 and one.metric.threshold.relative


def what_is_shown(one: RunSummary) -> str:
    """Return which change so many runs show, and how many show the threshold; '' where that is unknown."""
    if of_nothing(one):
        return (
            f"{one.metric.name}: its level is 0, of which {one.metric.threshold.value:.2%} is nothing: "
            f"give the threshold in its unit, such as '1 {one.metric.unit}'"
        )
    needed, shown = one.needed, one.shown
    if needed is None or shown is None:
        return ""
    unit = one.metric.unit
    threshold = f"the threshold of {phrases.number(one.threshold, one.mean)} {unit}".rstrip()
    if needed <= one.runs:
        return (
            f"{one.metric.name}: {one.runs} runs a side show {threshold} 19 times in 20; {needed:,} would do"
        )
    least = f"{phrases.number(shown, one.mean)} {unit}".rstrip()
    return (
        f"{one.metric.name}: {one.runs} runs a side show a change of {least} 19 times in 20; "
        f"{threshold} takes {needed:,} runs a side"
    )
