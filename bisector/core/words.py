"""Numbers in words, for reasons and conclusions."""

from __future__ import annotations

from bisector.core.model import Interval


def count(number: int, thing: str) -> str:
    """Return '1 run', '2 runs'."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def percent(i: Interval) -> str:
    """Return a relative change with its interval: '+2.10% (+1.90% to +2.30%)'."""
    return f"{100 * i.estimate:+.2f}% ({100 * i.low:+.2f}% to {100 * i.high:+.2f}%)"
