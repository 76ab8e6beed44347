"""Two profiles as text: the ranks, the changes, counts of calls, trees of chosen symbols."""

from __future__ import annotations

from collections.abc import Sequence

from bisector.linux.call_graph import Branch
from bisector.linux.profile import CallChange, Profile, ProfileComparison, Symbol, SymbolChange
from bisector.report import phrases
from bisector.report.columns import align

_MARK = {"kernel": "[k] ", "user": "[.] ", "task": "", "": ""}
_MAX_NAMED = 3
"""Symbols named in a sentence; the tables have all of them."""


def render(
    found: ProfileComparison, top: int, trees: Sequence[tuple[str, list[Branch], list[Branch]]] = ()
) -> str:
    """Return the text. top: lines of each table; trees: (symbol, callers, callees) of chosen symbols."""
    out: list[str] = []
    if found.symbols:
        out += [*_ranks(found, top), "", *_changes(found, top), ""]
        out += _whole(found, top)
    out += _calls(found.calls, found, top)
    for name, callers, callees in trees:
        out += _tree(name, callers, callees, found)
    return phrases.page([*out, *phrases.remarks(sentences(found), found.warnings)])


def shown(symbol: Symbol) -> str:
    """Return a symbol with perf's mark: [k] for the kernel's, [.] for a program's, none if not known."""
    return f"{_MARK[symbol.origin]}{symbol.name}"


def _digits(found: ProfileComparison) -> int:
    return max(found.a.places, found.b.places)


def _share(value: float | None, found: ProfileComparison) -> str:
    return "-" if value is None else f"{100 * value:.{_digits(found)}f}%"


def _points(value: float, found: ProfileComparison) -> str:
    return f"{100 * value:+.{_digits(found)}f}"


def _ranks(found: ProfileComparison, top: int) -> list[str]:
    sides = [_ordered(p) for p in (found.a, found.b)]
    marked = {line.symbol.name for line in found.symbols if line.touched}
    rows = []
    for rank in range(min(top, max(map(len, sides)))):
        cells = [str(rank + 1)]
        for profile, side in zip((found.a, found.b), sides, strict=True):
            if rank < len(side):
                symbol = side[rank]
                star = "*" if symbol.name in marked and symbol.origin != "user" else ""
                cells += [_share(profile.share(symbol), found), star + shown(symbol)]
            else:
                cells += ["", ""]
        rows.append(cells)
    return align(("", "SHARE", found.a.name, "SHARE", found.b.name), rows)


def _ordered(profile: Profile) -> list[Symbol]:
    listed = [s for s, weight in profile.own.items() if weight > 0]
    return sorted(listed, key=lambda s: -profile.own[s])  # stable: equal shares as the source has them


def _changes(found: ProfileComparison, top: int) -> list[str]:
    return align(changes_head(found), change_rows(found, top))


def changes_head(found: ProfileComparison) -> tuple[str, ...]:
    """Return the titles of the columns of `change_rows`."""
    return ("SYMBOL", found.a.name, found.b.name, "POINTS", "")


def change_rows(found: ProfileComparison, top: int) -> list[tuple[str, ...]]:
    """Return the symbols with the largest changes: name, both shares, points, words."""
    return [
        (
            ("*" if line.touched else "") + shown(line.symbol),
            _or_below(line.a, found.a, found),
            _or_below(line.b, found.b, found),
            _points(line.change, found),
            _describe(line),
        )
        for line in [x for x in found.symbols if x.a or x.b][:top]
    ]


def _or_below(share: float | None, profile: Profile, found: ProfileComparison) -> str:
    """Return a share; '<0.50%' for a symbol below the end of a list."""
    if share is None and profile.cut:
        return f"<{_share(profile.cut, found)}"
    return _share(share, found)


def _describe(line: SymbolChange) -> str:
    """Return the change in words; '~' where it may be chance."""
    if line.change == 0:
        return "the same"
    way = "more" if line.change > 0 else "less"
    if line.bound:
        return f"{way}, at least"
    return f"~ {way}, may be chance" if line.certain is False else way


def _whole(found: ProfileComparison, top: int) -> list[str]:
    if not (found.a.whole and found.b.whole):  # one was recorded without call chains: nothing to compare
        return []
    both = [
        (line, line.whole[0] or 0.0, line.whole[1] or 0.0)
        for line in found.symbols
        if line.whole != (None, None)
    ]
    if not both:
        return []
    both.sort(key=lambda x: (-max(x[1], x[2]), x[0].symbol))
    rows = [
        (
            ("*" if line.touched else "") + shown(line.symbol),
            _share(line.whole[0], found),
            _share(line.whole[1], found),
            _points(after - before, found),
            "the same" if after == before else "more" if after > before else "less",
        )
        for line, before, after in both[:top]
    ]
    return [*align(("WITH ALL IT CALLS", found.a.name, found.b.name, "POINTS", ""), rows), ""]


def _calls(counted: Sequence[CallChange], found: ProfileComparison, top: int) -> list[str]:
    rows = call_rows(counted, top)
    return [*align(calls_head(found), rows), ""] if rows else []


def calls_head(found: ProfileComparison) -> tuple[str, ...]:
    """Return the titles of the columns of `call_rows`."""
    return ("CALLS OF", found.a.name, found.b.name, "CHANGE", "A CALL", "A CALL", "CHANGE")


def call_rows(counted: Sequence[CallChange], top: int) -> list[tuple[str, ...]]:
    """Return counts of calls of both profiles, what a call takes, and how each changed."""
    rows: list[tuple[str, ...]] = []
    for row in counted[:top]:
        times = row.each[1] / row.each[0] if row.each[0] and row.each[1] is not None else None
        rows.append(
            (
                ("*" if row.touched else "") + shown(row.symbol),
                *("-" if c is None else f"{c:.0f}" for c in row.calls),
                "" if row.change is None else f"{100 * row.change:+.2f}%",
                *("" if e is None else f"{e:.3f} us" for e in row.each),
                "" if times is None else f"{100 * (times - 1):+.2f}%",
            )
        )
    return rows


def _tree(name: str, callers: list[Branch], callees: list[Branch], found: ProfileComparison) -> list[str]:
    if not callers and not callees:
        return [f"{name}: in no call chain of either profile", ""]
    out: list[str] = []
    for title, branches in (("is called by", callers), ("calls", callees)):
        rows = [
            (
                _share(branch.a, found),
                _share(branch.b, found),
                _points(branch.b - branch.a, found),
                "  " * branch.depth + shown(branch.symbol),
            )
            for branch in branches
        ]
        out += [*align((found.a.name, found.b.name, "POINTS", f"{name} {title}"), rows), ""]
    return out


def sentences(found: ProfileComparison) -> list[str]:
    """Return the conclusions: what rose, what fell, what the commit's own functions did."""
    out = []
    beyond_chance = [line for line in found.symbols if line.certain is not False and line.change]
    for way, some in (
        ("More", [line for line in beyond_chance if line.change > 0]),
        ("Less", [line for line in beyond_chance if line.change < 0]),
    ):
        if some:
            names = ", ".join(_with_points(line, found) for line in some[:_MAX_NAMED])
            out.append(f"{way} in {found.b.name} than in {found.a.name}: {names}.")
    if found.symbols and not beyond_chance:
        out.append("No symbol's share differs by more than chance may do.")
    marked = [line for line in found.symbols if line.touched]
    if marked:
        names = ", ".join(_with_points(line, found) + _doubt(line) for line in marked)
        out.append(f"* Changed by the commit: {names}.")
    if found.absent:
        out.append(
            f"Changed by the commit and in neither profile (inlined, or not run): {', '.join(found.absent)}."
        )
    out += [_counted(row, found) for row in found.calls[:_MAX_NAMED] if row.change]
    return out


def _doubt(line: SymbolChange) -> str:
    return " (may be chance)" if line.certain is False else ""


def _with_points(line: SymbolChange, found: ProfileComparison) -> str:
    least = " or more" if line.bound else ""
    return f"{line.symbol.name} {_points(line.change, found)} points{least}"


def _counted(row: CallChange, found: ProfileComparison) -> str:
    """Say whether a function is called more often, or a call takes longer: the causes differ."""
    change = row.change or 0.0
    text = (
        f"{found.b.name} calls {row.symbol.name} {abs(change):.1%} {'more' if change > 0 else 'less'} often"
    )
    if row.each[0] and row.each[1] is not None:
        times = row.each[1] / row.each[0] - 1
        text += f", and a call takes {abs(times):.1%} {'longer' if times > 0 else 'less time'}"
    return text + "."
