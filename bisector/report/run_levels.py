"""Runs made by hand, summed up for a person: level, spread, range, and what so many runs can show."""

from __future__ import annotations

from collections.abc import Container, Sequence

from bisector.report import phrases
from bisector.report.columns import fit, wrap
from bisector.stats.run_summary import RunSummary

_HEADER = ("METRIC", "MEAN", "SPREAD", "RANGE", "RUNS")


def lines(summary: Sequence[RunSummary], deciding: Container[str], width: int | None) -> list[str]:
    """Return a table of the metrics and what follows from it.

    deciding: names of metrics of which it is said what can be shown. width: characters of a line, or None.
    """
    rows, notes = [], []
    for one in summary:
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
            notes.append(f"{name}: far off: run {', '.join(map(str, one.far))}, counted without warm-ups")
        if name in deciding and one.needed is not None and one.shown is not None:
            notes.append(_what_is_shown(one, one.needed, one.shown))
    notes.append("runs of one boot; what boots differ by comes on top ('perfbisect calibrate' measures it)")
    table = fit(_HEADER, rows, width, dropped=["RUNS", "RANGE"])
    return [*table, *(line for note in notes for line in wrap(f"note: {note}", width))]


def _what_is_shown(one: RunSummary, needed: int, shown: float) -> str:
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
