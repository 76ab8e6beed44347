"""What two kernels execute, function by function: counts, whose differences add up to the effect."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from bisector.linux.profile import Profile, Symbol, source_name


@dataclass(frozen=True, slots=True)
class ExactChange:
    """One function. a, b: what it executes in a run; touched: the commit in question changes it."""

    symbol: Symbol
    a: float
    b: float
    touched: bool

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
    def effect(self) -> float:
        """The change of all functions together."""
        return sum(one.change for one in self.changes)

    def rest(self, shown: int) -> float:
        """Return what the functions behind the first `shown` ones change together."""
        return sum(one.change for one in self.changes[shown:])


def compare_exactly(a: Profile, b: Profile, touched: Collection[str] = ()) -> ExactComparison:
    """Compare two counted profiles. touched: functions that the commit in question changes."""
    changed = {source_name(name) for name in touched}
    changes = [
        ExactChange(
            symbol,
            a.own.get(symbol, 0.0),
            b.own.get(symbol, 0.0),
            symbol.origin == "kernel" and symbol.name in changed,
        )
        for symbol in {*a.own, *b.own}
    ]
    changes.sort(key=lambda one: (-abs(one.change), one.symbol))
    return ExactComparison(a, b, tuple(changes))
