"""Which bisection a free testbed serves next. Pure: what is known goes in, a choice comes out.

Bisections share testbeds boot by boot. A more urgent one comes first; among equals, testbeds are spread
evenly, and those who have waited longest come first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claimant:
    """A bisection that could use a testbed.

    priority: 1 is served first. using: how many testbeds it has now; served: when it had the testbed in
    question last, seconds on any clock, 0 if never; created: seconds since the epoch.
    """

    id: str
    priority: int
    using: int
    served: float
    created: float


def choose(claimants: Iterable[Claimant]) -> str | None:
    """Return the bisection that a free testbed serves next, None if none could use it."""
    order = sorted(claimants, key=lambda c: (c.priority, c.using, c.served, c.created, c.id))
    return order[0].id if order else None


def should_yield(holder: Claimant, others: Iterable[Claimant]) -> bool:
    """Return whether a testbed should go to another bisection when it can be left.

    It goes to a more urgent one, to one that has no testbed, and to one that has fewer even afterwards:
    passing it on for less would cost a boot, and it would come back.
    """
    return any(
        other.priority < holder.priority
        or (other.priority == holder.priority and (other.using == 0 or other.using + 1 < holder.using))
        for other in others
    )
