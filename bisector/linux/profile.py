"""Where two kernels spend their time, side by side: which shares changed, and which changes may be chance.

A profile's weights are shares of its own total: where one function takes more, all others seem to take less.
Changes are in points of that total. Where both recordings say how many samples they hold, a change is called
certain only beyond the sampling error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Origin = Literal["kernel", "user", "task", ""]
"""Whose code it is; '' if the profile does not say. 'task': a process's name, the root of a stack."""


@dataclass(frozen=True, slots=True, order=True)
class Symbol:
    """A function. Parts that a compiler makes of it (foo.isra.0, foo.cold) have its name in the source."""

    name: str
    origin: Origin = ""


Stack = tuple[Symbol, ...]
"""A call chain, outermost first."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One recording.

    own: weight of each symbol itself; whole: with all it calls (empty if unknown); stacks: weight of each
    call chain (empty if recorded without); total: of all weights, 100 where the source is in percent;
    samples: how many, 0 if not known; calls: how often a function was called, where that was counted; spent:
    microseconds in it and all it calls, where that was measured; cut: the smallest share in the source if it
    is the head of a longer list, else 0; places: significant decimals of a percentage.

    exact: weights are counts of a run, without chance; misses: what a model counted of a run, in the order
    of MISSES (schemas/counted_functions.py); geometry: of the model; callers: what a function executes for
    one of its callers, by both names; spreads: of each function the most less the least of the runs of one
    boot, empty if not known; no_stacks: why there are no call chains, if that is known; blocks: the file
    with the executions of blocks of code, '' without one.
    """

    name: str
    own: Mapping[Symbol, float] = field(default_factory=dict)
    whole: Mapping[Symbol, float] = field(default_factory=dict)
    stacks: Mapping[Stack, float] = field(default_factory=dict)
    total: float = 100.0
    samples: int = 0
    calls: Mapping[Symbol, float] = field(default_factory=dict)
    spent: Mapping[Symbol, float] = field(default_factory=dict)
    event: str = ""
    cut: float = 0.0
    places: int = 2
    notes: tuple[str, ...] = ()
    exact: bool = False
    misses: Mapping[Symbol, tuple[float, ...]] = field(default_factory=dict)
    geometry: str = ""
    callers: Mapping[tuple[str, str], float] = field(default_factory=dict)
    spreads: Mapping[Symbol, float] = field(default_factory=dict)
    no_stacks: str = ""
    blocks: str = ""

    def share(self, symbol: Symbol, *, whole: bool = False) -> float | None:
        """Return a symbol's share of the total (0.01 = 1%); None where it is not in the profile."""
        weight = (self.whole if whole else self.own).get(symbol)
        return None if weight is None or self.total <= 0 else weight / self.total


@dataclass(frozen=True, slots=True)
class SymbolChange:
    """One symbol in both profiles. a, b: shares of its own; whole: of it with all it calls.

    None: not in that profile. change: b - a (0.01 = one point of the total). bound: one side is missing from
    the head of a longer list, so the change is at least this much. certain: beyond the sampling error; None
    if the numbers of samples are not known. touched: the commit in question changes this function.
    """

    symbol: Symbol
    a: float | None
    b: float | None
    change: float
    bound: bool
    certain: bool | None
    whole: tuple[float | None, float | None]
    touched: bool


@dataclass(frozen=True, slots=True)
class CallChange:
    """Calls of one function in both profiles; None where it was not counted. each: microseconds a call."""

    symbol: Symbol
    calls: tuple[float | None, float | None]
    each: tuple[float | None, float | None]
    touched: bool

    @property
    def change(self) -> float | None:
        """The relative change of the number of calls (0.5 = half as many again)."""
        before, after = self.calls
        return after / before - 1 if before and after is not None else None


@dataclass(frozen=True, slots=True)
class ProfileComparison:
    """Two profiles side by side. symbols: the largest change first; calls: most calls first.

    absent: functions that the commit changes and neither profile shows.
    """

    a: Profile
    b: Profile
    symbols: tuple[SymbolChange, ...]
    calls: tuple[CallChange, ...]
    absent: tuple[str, ...]
    warnings: tuple[str, ...]


_MIN_SAMPLES = 2000
"""With fewer samples the 95% limits of a share of 1% are more than 0.4 points off."""

_COMPILER_SUFFIXES = re.compile(r"(?:\.(?:isra|constprop|part|cold|lto_priv|llvm|localalias)(?:\.\d+)*)+$")


def source_name(name: str) -> str:
    """Return a function's name as its source has it: 'finish_task_switch.isra.0' is finish_task_switch."""
    return _COMPILER_SUFFIXES.sub("", name)


def folded(stacks: Mapping[Stack, float]) -> tuple[dict[Symbol, float], dict[Symbol, float]]:
    """Return (own, whole) weights of a set of stacks; a recursive function counts once a stack."""
    own: dict[Symbol, float] = {}
    whole: dict[Symbol, float] = {}
    for stack, weight in stacks.items():
        frames = [s for s in stack if s.origin != "task"]
        if not frames:
            continue
        own[frames[-1]] = own.get(frames[-1], 0.0) + weight
        for symbol in set(frames):
            whole[symbol] = whole.get(symbol, 0.0) + weight
    return own, whole


def compare_profiles(
    a: Profile, b: Profile, touched: Sequence[str] = (), alpha: float = 0.05
) -> ProfileComparison:
    """Compare two profiles.

    touched: functions that the commit in question changes. alpha: probability that any change at all is
    wrongly called certain (Bonferroni: each is tested at alpha over their number).
    """
    changed = {source_name(name) for name in touched}
    pairs = _pair({*a.own, *a.whole}, {*b.own, *b.whole})
    symbols = [_symbol_change(pair, a, b, changed, alpha / max(len(pairs), 1)) for pair in pairs]
    symbols.sort(key=lambda x: (-abs(x.change), x.symbol))
    calls = [_call_change(pair, a, b, changed) for pair in _pair(set(a.calls), set(b.calls))]
    calls.sort(key=lambda x: (-max(c or 0.0 for c in x.calls), x.symbol))
    seen = {x.symbol.name for x in symbols} | {x.symbol.name for x in calls}
    absent = tuple(sorted(changed - seen))
    return ProfileComparison(a, b, tuple(symbols), tuple(calls), absent, tuple(_warnings(a, b)))


def _pair(a: set[Symbol], b: set[Symbol]) -> list[tuple[Symbol, Symbol]]:
    """Return (symbol in a, symbol in b) of all symbols; names pair where only one side knows the origin."""
    pairs = [(symbol, _partner(symbol, b)) for symbol in sorted(a)]
    pairs += [(_partner(symbol, a), symbol) for symbol in sorted(b)]
    return list(dict.fromkeys(pairs))


def _partner(symbol: Symbol, others: set[Symbol]) -> Symbol:
    """Return the same function of the other profile; the symbol itself if that profile has none."""
    if symbol in others:
        return symbol
    if symbol.origin:
        anonymous = Symbol(symbol.name)
        return anonymous if anonymous in others else symbol
    same = [s for s in others if s.name == symbol.name]
    return same[0] if len(same) == 1 else symbol


def _symbol_change(
    pair: tuple[Symbol, Symbol], a: Profile, b: Profile, changed: set[str], alpha: float
) -> SymbolChange:
    left, right = a.share(pair[0]), b.share(pair[1])
    known = pair[0] if pair[0].origin else pair[1]
    bound = (left is None and a.cut > 0) or (right is None and b.cut > 0)
    low = left if left is not None else min(a.cut, right or 0.0)
    high = right if right is not None else min(b.cut, left or 0.0)
    change = high - low
    exact = a.exact and b.exact
    return SymbolChange(
        symbol=known,
        a=left,
        b=right,
        change=change,
        bound=bound,
        certain=exact or (None if bound else _certain(low, high, a.samples, b.samples, alpha)),
        whole=(a.share(pair[0], whole=True), b.share(pair[1], whole=True)),
        touched=_is_touched(known, changed),
    )


def _call_change(pair: tuple[Symbol, Symbol], a: Profile, b: Profile, changed: set[str]) -> CallChange:
    calls = a.calls.get(pair[0]), b.calls.get(pair[1])
    spent = a.spent.get(pair[0]), b.spent.get(pair[1])
    each = tuple(t / n if n and t is not None else None for n, t in zip(calls, spent, strict=True))
    known = pair[0] if pair[0].origin else pair[1]
    return CallChange(known, calls, (each[0], each[1]), _is_touched(known, changed))


def _is_touched(symbol: Symbol, changed: set[str]) -> bool:
    return symbol.origin in ("kernel", "") and source_name(symbol.name) in changed


def _certain(a: float, b: float, n: int, m: int, alpha: float) -> bool | None:
    """Return whether two shares of n and m samples differ (the pooled test of two proportions)."""
    if not n or not m:
        return None
    pooled = (a * n + b * m) / (n + m)
    error = math.sqrt(max(pooled * (1 - pooled), 0.0) * (1 / n + 1 / m))
    if error == 0:
        return False
    from scipy import special  # takes 0.1 s, which looking at a report need not wait for

    return 2 * float(special.ndtr(-abs(b - a) / error)) <= alpha


def _warnings(a: Profile, b: Profile) -> list[str]:
    out = [f"{p.name}: {note}" for p in (a, b) for note in p.notes]
    if a.event and b.event and a.event != b.event:
        out.append(f"{a.name} counts {a.event}, {b.name} counts {b.event}: shares of different things")
    for profile in (a, b):
        if profile.own and not profile.samples and not profile.exact:
            out.append(f"{profile.name}: the number of samples is not told: chance cannot be judged")
        elif 0 < profile.samples < _MIN_SAMPLES:
            out.append(
                f"{profile.name}: {profile.samples} samples: a symbol of 1% is known to "
                f"{100 * 1.96 * math.sqrt(0.01 * 0.99 / profile.samples):.1f} points only; record longer"
            )
    if a.samples and b.samples:
        out.append("chance is judged by each recording's sampling alone: what boots differ by is not in it")
    return out
