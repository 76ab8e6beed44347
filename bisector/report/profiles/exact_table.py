"""Two counted profiles side by side: what each function executes more or less, and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bisector.linux.exact_profile import ExactChange, ExactComparison
from bisector.linux.profile import Symbol
from bisector.report import phrases
from bisector.report.columns import align
from bisector.report.profiles import exact_calls


def render(found: ExactComparison, top: int, trees: exact_calls.Trees = ()) -> str:
    """Return the text. top: lines of each table; trees: (function, callers, callees) of chosen ones."""
    out = [*table(found, top), "", *phrases.wrap(sentence(found, top) + _spread(found), "")]
    out += exact_calls.lines(found)
    calls = exact_calls.rows(found, top)
    out += ["", *align(exact_calls.head(found), calls, right=True)] if calls else []
    out += exact_calls.tree_lines(found, trees)
    if found.a.misses and found.b.misses:
        for titles, places, first in _MISSES:
            misses = miss_rows(found, top, places, first)
            out += ["", *align(_miss_head(titles, misses), misses, right=True)] if misses else []
        out += ["", *phrases.wrap(modelled(found), "")]
    return phrases.page(out)


def table(found: ExactComparison, top: int) -> list[str]:
    """Return the functions that changed most, the rest of them, and the sum, as aligned lines."""
    return align(head(found), rows(found, top), right=True)


def head(found: ExactComparison) -> tuple[str, ...]:
    """Return the titles of the columns of `rows`."""
    titles = f"{found.unit} a run".upper(), found.a.name, found.b.name, "CHANGE", "OF ALL"
    return (*titles, _RUNS) if _has_spreads(found) else titles


def rows(found: ExactComparison, top: int) -> list[tuple[str, ...]]:
    """Return the functions that changed most, the rest of them, and the sum."""
    changed = _changed(found, top)
    out = [
        _row(found, ("*" if one.touched else "") + one.symbol.name, one.a, one.b, _spread_of([one]))
        for one in changed
    ]
    rest = found.changes[len(changed) :]
    if rest:
        label = f"{len(rest)} others"
        spread = _spread_of(rest, "<= ")
        out.append(_row(found, label, sum(one.a for one in rest), sum(one.b for one in rest), spread))
    return [*out, _row(found, "all", found.a.total, found.b.total)]


_RUNS = "RUNS DIFFER BY"
"""The most less the least of one boot's runs, of either profile: an exact count's own error."""


def _has_spreads(found: ExactComparison) -> bool:
    return bool(found.a.spreads and found.b.spreads)


def _spread_of(some: Sequence[ExactChange], prefix: str = "") -> str:
    """Return the largest one of some functions; '?' where none is known."""
    known = [spread for one in some for spread in one.spread if spread is not None]
    return f"{prefix}{max(known):,.0f}" if known else "?"


_MISSES = (
    (("MODELLED MISSES A RUN", "L1i", "L1d", "MEMORY", "BRANCHES"), (0, 1, 2, 3), 2),
    (("MODELLED, A RUN", "CYCLES", "L2", "iTLB", "dTLB", "BOTH TLBS"), (8, 4, 5, 6, 7), 8),
)
"""Tables of what a model counted: titles, places in `Profile.misses`, and the one that decides their order.
Profiles of earlier versions have the first three or four places alone."""


def _miss_head(titles: Sequence[str], rows: list[tuple[str, ...]]) -> tuple[str, ...]:
    return (titles[0], *(word for title in titles[1:] for word in (title, "CHANGE")))[: len(rows[0])]


def _spread(found: ExactComparison) -> str:
    """Return how far runs of one boot differ: an exact count's own error."""
    if not _has_spreads(found):
        return ""
    most = _spread_of(found.changes)
    if most == "0":
        return " Runs of one boot agree in every function, to the last instruction."
    return f" Runs of one boot differ by at most {most} in any one function."


def miss_rows(
    found: ExactComparison, top: int, places: Sequence[int] = (0, 1, 2, 3), first: int = 2
) -> list[tuple[str, ...]]:
    """Return the functions that changed most by what a model counted; empty without one model.

    places: which of its numbers, where both profiles have them; first: the one that decides the order.
    """
    if not (found.a.misses and found.b.misses) or found.a.geometry != found.b.geometry:
        return []
    known = min(len(one) for side in (found.a, found.b) for one in side.misses.values())
    kept = [at for at in places if at < known]
    if first not in kept:
        return []
    none = (0.0,) * known
    pairs = {
        symbol: tuple(tuple(side.misses.get(symbol, none)[at] for at in kept) for side in (found.a, found.b))
        for symbol in {*found.a.misses, *found.b.misses}
    }
    at = kept.index(first)

    def size(symbol: Symbol) -> tuple[float, ...]:
        changes = [-abs(b - a) for a, b in _columns(pairs[symbol])]
        return changes[at], *changes

    order = sorted(pairs, key=lambda symbol: (size(symbol), symbol))
    listed = [(symbol.name, pairs[symbol]) for symbol in order[:top]]
    everything = tuple(tuple(map(sum, zip(*side, strict=True))) for side in zip(*pairs.values(), strict=True))
    of_programs = any(symbol.origin == "user" for symbol in pairs)
    label = "all" if of_programs else "all of the kernel"
    return [_miss_row(name, pair) for name, pair in [*listed, (label, everything)]]


def _columns(pair: tuple[tuple[float, ...], ...]) -> list[tuple[float, float]]:
    return list(zip(pair[0], pair[1], strict=True))


def _miss_row(name: str, pair: tuple[tuple[float, ...], ...]) -> tuple[str, ...]:
    cells = [text for a, b in _columns(pair) for text in (f"{b:,.0f}", f"{b - a:+,.0f}")]
    return (name, *cells)


def modelled(found: ExactComparison) -> str:
    """Return what the misses are, in words."""
    before, after = found.a.geometry, found.b.geometry
    if before != after:
        return f"Misses are those of two models and do not compare: {before}; {after}."
    return f"Misses are those of a model, never measured: {after}."


def sentence(found: ExactComparison, top: int, work: tuple[str, int] | None = None) -> str:
    """Return what accounts for the effect, in words. work: what a run does, and how often."""
    rest = found.rest(len(_changed(found, top)))
    each = "" if work is None else f", {_small(found.effect / work[1])} {_article(work[0])} {work[0]}"
    text = (
        f"Of {found.effect:+,.0f} {found.unit} a run{each} ({_share(found.effect, found.a.total)}) the "
        f"functions above account for {found.effect - rest:+,.0f}; {rest:+,.0f} are left. "
        + ("Counted, not sampled." if found.unit == "instructions" else "They are a model's, never measured.")
    )
    if any(one.touched for one in found.changes):
        ours = sum(one.change for one in found.changes if one.touched)
        text += f" * marks functions that the commit changes: {ours:+,.0f}."
    return text


def _article(unit: str) -> str:
    return "an" if unit[0] in "aeioAEIO" else "a"


def _small(value: float) -> str:
    """Return a change of one unit of work, with a tenth where that says something."""
    return f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.3g}"


def _changed(found: ExactComparison, top: int) -> list[ExactChange]:
    return [one for one in found.changes[:top] if one.change]


def _row(found: ExactComparison, label: str, a: float, b: float, spread: str = "") -> tuple[str, ...]:
    cells = label, f"{a:,.0f}", f"{b:,.0f}", f"{b - a:+,.0f}", _share(b - a, found.a.total)
    return (*cells, spread) if _has_spreads(found) else cells


def as_json(found: ExactComparison, top: int | None = None) -> dict[str, Any]:
    """Return the same for machines. top: the most functions, those that changed most; None for all."""
    return {
        "unit": found.unit,
        "totals": [found.a.total, found.b.total],
        "functions": [
            {
                "name": one.symbol.name,
                "origin": one.symbol.origin,
                "counts": [one.a, one.b],
                "change": one.change,
                "touched": one.touched,
                "calls": list(one.calls),
                "callers": exact_calls.as_json(one.callers),
                "spread": list(one.spread),
                "misses": [list(side.misses.get(one.symbol, ())) for side in (found.a, found.b)],
            }
            for one in found.changes[:top]
            if one.a or one.b
        ],
        "rest": found.rest(len(found.changes) if top is None else top),
        "modelled": found.b.geometry,
    }


def _share(change: float, total: float) -> str:
    return f"{100 * change / total:+.2f}%" if total else "-"
