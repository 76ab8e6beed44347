"""Numbers and paragraphs of a report: signs that cannot be read two ways, lines that fit a mail."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from bisector.model.decisions import Ending, Interval
from bisector.model.format import MOST_PLACES, SHORT_FROM, interval, percent, places
from bisector.model.goal import Goal, Metric
from bisector.model.printable import printable_line
from bisector.stats.samples import SampleSeries, word
from bisector.utc_time import minute

TEXT_COLUMNS = 78
"""Fits a mail and a terminal of 80 columns with a quote mark in front."""

_LEAST_IN_FULL = 1e-6
"""Below it nine places hold fewer than four digits: 1.5 ns in seconds was 0.000000002."""

_LEAST_TOLD_CHANGE = 1e-6
"""Relative; smaller ones are rounding, or of no interest to anybody."""

_LEAST_TOLD_PROBABILITY = 0.001
"""Probabilities nearer to 0 or 1 are written as 'under' or 'over'."""

ENDINGS = {
    Ending.CULPRIT: "CULPRIT PROVEN",
    Ending.CULPRITS: "SEVERAL CULPRITS",
    Ending.CULPRIT_SET: "A SET OF COMMITS THAT CANNOT BE TOLD APART",
    Ending.SPREAD: "SPREAD OVER MANY COMMITS",
    Ending.FIXED_ON_GOOD_SIDE: "FIXED ON GOOD'S SIDE",
    Ending.NOT_REPRODUCED: "NOT REPRODUCED",
    Ending.INCONCLUSIVE: "INCONCLUSIVE",
    Ending.FIX: "FIX PROVEN",
    Ending.FIXES: "SEVERAL FIXES",
    Ending.FIX_SET: "A SET OF COMMITS THAT CANNOT BE TOLD APART",
    Ending.BROKEN_ON_BAD_SIDE: "BROKEN ON BAD'S SIDE",
    Ending.MENDED: "MENDED",
    Ending.PARTLY_MENDED: "PARTLY MENDED",
    Ending.NOT_MENDED: "NOT MENDED",
    Ending.MEASURED: "MEASURED",
    Ending.CONFIRMED: "THE LEVEL MOVED",
    Ending.REJECTED: "THE LEVEL DID NOT MOVE AS SUSPECTED",
}
"""The headline of each ending."""


def number(value: float, reference: float | None = None) -> str:
    """Return a number with five significant digits; `reference` fixes the places for a whole column."""
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= SHORT_FROM:
        return f"{value:.5g}"
    size = abs(reference if reference else value)
    if size >= 1e5:
        return f"{value:.0f}"
    if 0 < size < _LEAST_IN_FULL:
        return f"{value:.5g}"
    digits = 4 - (math.floor(math.log10(size)) if size > 0 else 0)
    return f"{value:.{min(max(digits, 0), MOST_PLACES)}f}"


def amount(value: float) -> str:
    """Return a count as an integer with separators, any other number as `number` does."""
    if abs(value) >= SHORT_FROM:
        return number(value)
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1e6 else number(value)


def threshold(goal: Goal) -> str:
    """Return '5% of good' or '0.1 s'."""
    size = goal.metric.threshold
    return (
        f"{100 * size.value:g}% of {goal.terms.old}"
        if size.relative
        else f"{size.value:g} {goal.metric.unit}"
    )


def judged(fraction: float, metric: Metric) -> str:
    """Return 'slower', 'more, worse' and so on, as `compare` says it; a sign alone can be read two ways."""
    return word(fraction, metric.name, SampleSeries((), metric.unit), metric.better)


def verdict(fraction: float, metric: Metric) -> str:
    """Return the last word of `judged`, for a sentence: 'slower', 'worse'."""
    return judged(fraction, metric).rpartition(", ")[2]


def change(before: float, after: float, metric: Metric) -> str:
    """Return '+19.41% slower': of the size of what was before, which may be negative; in the unit of zero.

    A change of the threshold's size is told with two figures.
    """
    if not before:
        more = f"{'+' if after > 0 else ''}{amount(after)} {metric.unit}".rstrip()
        return f"{more} {judged(after, metric)}"
    size = (after - before) / abs(before)
    asked = metric.threshold.value if metric.threshold.relative else 1.0
    digits = min(max(2, 1 - math.floor(math.log10(100 * asked))), MOST_PLACES)
    text = percent(size, digits)
    if text[0] not in "+-" and abs(size) >= _LEAST_TOLD_CHANGE:
        text = percent(size, max(4, digits))
    return f"{text} {judged(size if text[0] in '+-' else 0.0, metric)}"


def run_value(text: str, flags: Iterable[str], *, warmup: bool) -> str:
    """Return the value of a run as it is shown: a warm-up in parentheses, a flagged run with its flags."""
    if warmup:
        return f"({text})"
    return f"{text}[{flagged}]" if (flagged := ",".join(flags)) else text


def tenths(change: float, sign: str = "") -> str:
    """Return percent with one place; with two figures what that would call nothing. sign: '+' shows it."""
    text = f"{change:{sign}.1f}"
    return text if float(text) or not change else f"{change:{sign}.2g}"


def effect(value: Interval, metric: Metric) -> str:
    """Return '+19.4% slower (+19.2% .. +19.6%)' for a relative change with its 95% interval."""
    digits = places(value)
    size = percent(value.estimate, digits)
    text = f"{size} {judged(value.estimate if size[0] in '+-' else 0.0, metric)}"
    if math.isinf(value.low) or math.isinf(value.high):
        return f"{text} (no interval)"
    return f"{text} ({interval(value, digits)})"


def probability(value: float) -> str:
    """Return '98.3%'; beyond 99.9% no digits are shown, since no model of noise is that precise."""
    if value > 1 - _LEAST_TOLD_PROBABILITY:
        return f"over {1 - _LEAST_TOLD_PROBABILITY:.1%}"
    return f"{value:.1%}" if value >= _LEAST_TOLD_PROBABILITY else f"under {_LEAST_TOLD_PROBABILITY:.1%}"


def wrap(text: str, indent: str = "  ", hang: str | None = None, width: int = TEXT_COLUMNS) -> list[str]:
    """Return a paragraph filled to a width, the report's by default; words longer than a line stay whole."""
    lines: list[str] = []
    for paragraph in text.splitlines() or [""]:
        lines += textwrap.wrap(
            paragraph,
            width,
            initial_indent=indent,
            subsequent_indent=indent if hang is None else hang,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return lines


def heading(text: str) -> list[str]:
    """Return a section's head, with an empty line before it."""
    return ["", text, "-" * len(text)]


def cut(text: str, width: int) -> str:
    """Return the text in at most so many columns."""
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."


def bullets(items: Iterable[str], indent: str = "  ", width: int = TEXT_COLUMNS) -> list[str]:
    """Return a list whose items are filled with a hanging indent."""
    return [line for item in items for line in wrap(item, f"{indent}* ", f"{indent}  ", width)]


def remarks(sentences: Iterable[str], warnings: Iterable[str], width: int | None = None) -> list[str]:
    """Return what every table ends with: conclusions in paragraphs, then notes.

    Each is one paragraph: a name in it that holds a newline begins no note of its own.
    width: characters of a line of the terminal; a report's lines are no longer than TEXT_COLUMNS on any.
    """
    room = TEXT_COLUMNS if width is None else min(width, TEXT_COLUMNS)
    out: list[str] = []
    for sentence in sentences:
        out += [*wrap(printable_line(sentence), "", width=room), ""]
    for warning in warnings:
        out += wrap(f"note: {printable_line(warning)}", "", "      ", room)
    return out


def page(lines: Iterable[str]) -> str:
    """Return lines as one text that ends with a newline, without blanks at the ends of lines.

    All reports end here, so this is where their text is made printable.
    """
    return "\n".join(printable_line(line.rstrip()) for line in lines).rstrip() + "\n"


def duration(seconds: float) -> str:
    """Return seconds in the unit that fits: '4.8 s', '12 min', '3 h 10 min'."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


def pairs(rows: Mapping[str, str] | Sequence[tuple[str, str]]) -> list[str]:
    """Return names and their texts in two columns."""
    listed = list(rows.items()) if isinstance(rows, Mapping) else rows
    width = min(max((len(name) for name, _ in listed), default=0), 20)
    out: list[str] = []
    for name, value in listed:
        out += wrap(f"{name:<{width}}  {value}", "  ", " " * (width + 4))
    return out


def recipe(name: str, chosen: bool) -> str:
    """Return a recipe's name, and why it is this one where the user named none."""
    return f"{name}, the smallest that serves the workload (--recipe decides otherwise)" if chosen else name


def date(seconds: float) -> str:
    """Return a time, given in seconds since the epoch, to the minute."""
    return minute(seconds)
