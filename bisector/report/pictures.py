"""Pictures in characters: how probable each suspect is, and where the samples of each commit lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean

from bisector.model.commit_graph import short_name
from bisector.model.decisions import Measure
from bisector.model.format import count
from bisector.report import phrases
from bisector.report.report_model import Material
from bisector.report.trials import mean_of_boots, scales

_BAR_CELLS = 20
"""Characters of the longest bar: one for five percent."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"
_DOTS = "·•●"
"""One, two, and more samples in the place of one character."""
MAX_NAMED_SUSPECTS = 5
"""Suspects that are named: what a person takes in at a glance."""
_LEAST_CELLS = 20
"""Characters of a strip, at least: fewer show nothing."""
_ASCII = str.maketrans(
    {
        **dict.fromkeys("▌▋▊▉█", "#"),
        **dict.fromkeys("▏▎▍", " "),
        **dict(zip(_HEIGHTS[:-1], "__..--=", strict=True)),
        "·": ".",
        "•": "o",
        "●": "O",
    }
)


def section(material: Material, width: int) -> list[str]:
    """Return the pictures of a bisection, with headings. width: characters of a line."""
    out: list[str] = []
    terms = material.goal.terms
    drawn = strip(material, width)
    if drawn:
        title = f"Samples by {terms.unit}, from {terms.old} to {terms.new}"
        out += [*phrases.heading(title), *drawn]
    last = material.decisions[-1][1] if material.decisions else None
    if isinstance(last, Measure) and last.suspects and material.conclusion is None:
        out += [*phrases.heading(f"Where the {terms.one} may be"), *suspects(last.suspects, material.label)]
    return out


def bar(share: float, cells: int = _BAR_CELLS) -> str:
    """Return a bar of `cells` characters for a share of 0..1, drawn to an eighth of a character."""
    eighths = round(min(max(share, 0.0), 1.0) * cells * 8)
    full, part = divmod(eighths, 8)
    return (_EIGHTHS[8] * full + (_EIGHTHS[part] if part else "")).ljust(cells)


def sparkline(values: Sequence[float], cells: int = 60) -> str:
    """Return a character for each value by its height between the least and the largest.

    More values than `cells` are drawn as the means of equal parts of the series; equal ones as one line.
    """
    parts = min(len(values), cells)
    bounds = [len(values) * at // parts for at in range(parts + 1)] if parts else [0]
    means = [fmean(values[begin:end]) for begin, end in pairwise(bounds)]
    low, high = min(means, default=0.0), max(means, default=0.0)
    steps = len(_HEIGHTS) - 1
    return "".join(
        _HEIGHTS[round((mean - low) / (high - low) * steps) if high > low else 0] for mean in means
    )


def suspects(found: Sequence[tuple[int, float]], label: Callable[[int], str]) -> list[str]:
    """Return a line for each of the first suspects, and one for all others. found: (commit, probability)."""
    shown = found[:MAX_NAMED_SUSPECTS]
    out = [f"{share:4.0%} {bar(share)} {label(commit)}" for commit, share in shown]
    others = 1 - sum(share for _, share in shown)
    return [*out, f"{others:4.0%} {bar(others)} other commits, or none"] if shown and others >= 0.005 else out


def strip(material: Material, width: int) -> list[str]:
    """Return a line for each commit with samples, in the order of history, on one axis; [] for less than two.

    width: characters of a line. Where several testbeds measured, the older end has the same level on each;
    under the instruction clock the samples are without what their repetition explains.
    """
    boots: dict[int, list[list[float]]] = {}
    factors = scales(material)
    for trial in material.trials:
        if trial.samples and not trial.discarded:
            factor = factors.get(trial.booted.testbed, 1.0)
            boots.setdefault(trial.booted.commit, []).append([factor * value for value in trial.levelled])
    measured = {commit: [value for boot in of for value in boot] for commit, of in sorted(boots.items())}
    low = min((min(values) for values in measured.values()), default=0.0)
    high = max((max(values) for values in measured.values()), default=0.0)
    if len(measured) < 2 or low == high:
        return []
    names = {commit: short_name(material.commit(commit).sha) for commit in measured}
    terms = material.goal.terms
    ends = {material.graph.good: terms.old, material.graph.bad: terms.new}
    notes = {
        commit: f"{phrases.number(mean_of_boots(boots[commit]), high)}  {count(len(values), 'run')}"
        + (f"  {ends[commit]}" if commit in ends else "")
        for commit, values in measured.items()
    }
    cells = max(width - 12 - 4 - max(map(len, notes.values())), _LEAST_CELLS)
    unit = material.goal.metric.unit
    left, right = phrases.number(low, high), f"{phrases.number(high)} {unit}".rstrip()
    out = [f"{material.goal.metric.name[:12]:12}  {left}{right:>{max(cells - len(left), len(right) + 1)}}"]
    for commit, values in measured.items():
        places = Counter(round((value - low) / (high - low) * (cells - 1)) for value in values)
        line = "".join(_DOTS[min(places[at], len(_DOTS)) - 1] if at in places else " " for at in range(cells))
        out.append(f"{names[commit]}  {line}  {notes[commit]}")
    return out


def in_characters_of(encoding: str | None, lines: Sequence[str]) -> list[str]:
    """Return the lines as they are, or in ASCII where this encoding lacks what they draw with."""
    try:
        "".join(_EIGHTHS + _HEIGHTS + _DOTS).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return [line.translate(_ASCII) for line in lines]
    return list(lines)
