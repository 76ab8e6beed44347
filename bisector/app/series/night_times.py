"""When the nights of a series are due: cron in a time zone, as Debian's cron reads it.

`cronsim` does what that cron does where clocks are changed: a night whose time does not exist that day is due
as soon as the clock has jumped, and one whose time comes twice is due once.
"""

from __future__ import annotations

import itertools
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from bisector.errors import RequestError, nearest

_CURE = "write minute, hour, day of the month, month and day of the week: '30 2 * * *' is 02:30 each day"


def check_times(cron: str, time_zone: str, now: float) -> None:
    """Raise RequestError for a cron that cannot be read or never fires, or an unknown time zone."""
    if len(cron.split()) != 5:
        raise RequestError(f"--cron: '{cron}' has not five fields", cure=_CURE)
    times_after(cron, time_zone, now)


def times_after(cron: str, time_zone: str, after: float) -> Iterator[float]:
    """Return when nights are due after a time, seconds since the epoch, one after the other.

    Raises RequestError as `check_times`.
    """
    try:
        zone = zoneinfo.ZoneInfo(time_zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        known = zoneinfo.available_timezones()
        raise RequestError(
            f"--time-zone: there is no time zone '{time_zone}'{nearest(time_zone, known)}",
            cure="name one as 'Europe/Berlin' or 'UTC'",
        ) from error
    try:
        found = CronSim(cron, datetime.fromtimestamp(after, zone))
    except CronSimError as error:
        raise RequestError(f"--cron: '{cron}' is not a time that ever comes: {error}", cure=_CURE) from error
    times = (when.astimezone(UTC).timestamp() for when in found)
    # In the hour that comes twice cronsim begins with the first of the two, which may have passed already.
    return itertools.dropwhile(lambda time: time <= after, times)
