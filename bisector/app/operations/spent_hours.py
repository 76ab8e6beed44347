"""Costs of bisections: hours of builders and testbeds, by owner, series or workload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock

from bisector.model.decisions import Ending
from bisector.model.stored_bisection import ENDED, Summary
from bisector.store_ports import Store

_HOUR_SECONDS = 3600.0
_PROVEN = frozenset({Ending.CULPRIT, Ending.CULPRITS, Ending.FIX, Ending.FIXES})
"""Endings that name single commits."""


@dataclass(frozen=True, slots=True)
class SpentTotals:
    """Bisections, what they found, and what they cost. build, machine: hours."""

    bisections: int = 0
    culprits: int = 0
    build: float = 0.0
    machine: float = 0.0

    def __add__(self, other: SpentTotals) -> SpentTotals:
        return SpentTotals(
            self.bisections + other.bisections,
            self.culprits + other.culprits,
            self.build + other.build,
            self.machine + other.machine,
        )

    @property
    def hours_a_culprit(self) -> float | None:
        """Hours of testbeds for each culprit; None where none was found."""
        return self.machine / self.culprits if self.culprits else None


@dataclass
class SpentHours:
    """What each bisection cost; of one that has ended it is read once."""

    _known: dict[str, Mapping[str, float]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def of(self, store: Store, one: Summary) -> SpentTotals:
        """Return what one bisection cost so far. Raises RequestError where it was removed meanwhile."""
        with self._lock:
            seconds = self._known.get(one.id)
        if seconds is None:
            seconds = store.seconds_spent(one.id)
            if one.status in ENDED:
                with self._lock:
                    self._known[one.id] = seconds
        found = len(one.culprits) if one.ending in _PROVEN else 0
        machine = seconds.get("Booted", 0.0) + seconds.get("Ran", 0.0)
        return SpentTotals(1, found, seconds.get("Built", 0.0) / _HOUR_SECONDS, machine / _HOUR_SECONDS)


def added_up(
    costs: Iterable[tuple[Summary, SpentTotals]], key: Callable[[Summary], str]
) -> list[tuple[str, SpentTotals]]:
    """Return what each group of bisections cost, the most expensive first."""
    groups: dict[str, SpentTotals] = {}
    for one, spent in costs:
        groups[key(one)] = groups.get(key(one), SpentTotals()) + spent
    return sorted(groups.items(), key=lambda group: -group[1].machine)
