"""Functions that two kernels execute: counts, whose differences add up to the effect."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from bisector.linux.profile import Profile, Symbol, source_name
from bisector.model.facts import USER_CODE

_INSTRUCTIONS = ("instructions", "")
"""Events of a counted profile that mean instructions."""

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class CallerCounts:
    """What a function executes for one of its callers. a, b: in a run."""

    caller: str
    a: float
    b: float

    @property
    def change(self) -> float:
        """What it executes more for this caller, negative for less."""
        return self.b - self.a


@dataclass(frozen=True, slots=True)
class ExactChange:
    """One function. a, b: what it executes in a run; touched: the commit in question changes it.

    callers: for whom, the largest change first; empty where calls were not followed. calls: of it, in a run.
    spread: by how much the runs of one boot differ in it; None where that is not known.
    """

    symbol: Symbol
    a: float
    b: float
    touched: bool
    callers: tuple[CallerCounts, ...] = ()
    calls: tuple[float, float] = (0.0, 0.0)
    spread: tuple[float | None, float | None] = (None, None)

    @property
    def change(self) -> float:
        """What it executes more, negative for less."""
        return self.b - self.a


@dataclass(frozen=True, slots=True)
class ExactComparison:
    """Two counted profiles. changes: all functions of either, the largest change first."""

    a: Profile
    b: Profile
    changes: tuple[ExactChange, ...]

    @property
    def unit(self) -> str:
        """The unit of the counts."""
        return self.a.event or "instructions"

    @property
    def effect(self) -> float:
        """The change of all functions together."""
        return sum(one.change for one in self.changes)

    def rest(self, shown: int) -> float:
        """Return what the functions behind the first `shown` ones change together."""
        return sum(one.change for one in self.changes[shown:])


def compare_exactly(a: Profile, b: Profile, touched: Collection[str] = ()) -> ExactComparison:
    """Compare two counted profiles. touched: functions that the commit in question changes."""
    a, b = _alike(a, b)
    changed = {source_name(name) for name in touched}
    callers = _callers(a, b)
    changes = [
        ExactChange(
            symbol,
            a.own.get(symbol, 0.0),
            b.own.get(symbol, 0.0),
            symbol.origin == "kernel" and symbol.name in changed,
            callers.get(symbol.name, ()) if symbol.origin == "kernel" else (),
            (a.calls.get(symbol, 0.0), b.calls.get(symbol, 0.0)),
            (_spread(a, symbol), _spread(b, symbol)),
        )
        for symbol in {*a.own, *b.own}
    ]
    changes.sort(key=lambda one: (-abs(one.change), one.symbol))
    return ExactComparison(a, b, tuple(changes))


def _alike(a: Profile, b: Profile) -> tuple[Profile, Profile]:
    """Return both with the same detail of user code; earlier versions recorded less of it.

    They had the instructions of all programs together, and nothing of what programs missed.
    """
    if _detail(a) == _detail(b):
        return a, b
    return _without_functions(a), _without_functions(b)


def _detail(profile: Profile) -> tuple[bool, bool]:
    """Return whether functions of programs are told apart, and whether all counts are known of programs."""
    names = {one.name for one in profile.own if one.origin == "user"}
    modelled = profile.misses if profile.event in _INSTRUCTIONS else profile.own
    return bool(names - {USER_CODE}), any(one.origin == "user" for one in modelled)


def _without_functions(profile: Profile) -> Profile:
    own = _of_kernel(profile.own)
    if profile.event in _INSTRUCTIONS:
        own[Symbol(USER_CODE, "user")] = sum(profile.own.values()) - sum(own.values())
    calls, misses, spreads = (
        _of_kernel(profile.calls),
        _of_kernel(profile.misses),
        _of_kernel(profile.spreads),
    )
    return replace(profile, own=own, total=sum(own.values()), calls=calls, misses=misses, spreads=spreads)


def _of_kernel(values: Mapping[Symbol, _Value]) -> dict[Symbol, _Value]:
    return {symbol: value for symbol, value in values.items() if symbol.origin != "user"}


def _spread(profile: Profile, symbol: Symbol) -> float | None:
    """Return how far runs differ; a function that no run executed has 0."""
    if profile.spreads and symbol not in profile.own:
        return 0.0
    return profile.spreads.get(symbol)


def _callers(a: Profile, b: Profile) -> Mapping[str, tuple[CallerCounts, ...]]:
    """Return the callers of each function; nothing unless calls were followed in both kernels."""
    if not (a.callers and b.callers):
        return {}
    found: dict[str, list[CallerCounts]] = {}
    for callee, caller in sorted({*a.callers, *b.callers}):
        key = callee, caller
        found.setdefault(callee, []).append(
            CallerCounts(caller, a.callers.get(key, 0.0), b.callers.get(key, 0.0))
        )
    return {name: tuple(sorted(some, key=lambda one: -abs(one.change))) for name, some in found.items()}
