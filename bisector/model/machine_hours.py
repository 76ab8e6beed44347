"""How long an owner's bisections had testbeds in the last week, and until when a cap makes them wait.

The unit is the time of a testbed in visits, boots and waiting for a kernel included: nobody else has it then.
"""

from __future__ import annotations

from collections.abc import Mapping

HOUR_SECONDS = 3600.0
WEEK_HOURS = 168


def hour_of(now: float) -> int:
    """Return the hour since the epoch."""
    return int(now // HOUR_SECONDS)


def wait_until(by_hour: Mapping[int, float], cap: float, now: float, counted: float = 0.0) -> float | None:
    """Return when the last week's seconds are below the cap again, None if they are.

    by_hour: hour since the epoch -> seconds; counted: of this hour, besides.
    """
    used = dict(by_hour)
    hour = hour_of(now)
    used[hour] = used.get(hour, 0.0) + counted
    week = {h: seconds for h, seconds in used.items() if h > hour - WEEK_HOURS}
    total = sum(week.values())
    if total < cap:
        return None
    for h in sorted(week):
        total -= week[h]
        if total < cap:
            return (h + WEEK_HOURS) * HOUR_SECONDS
    return None
