"""When nights are due: in a time zone, over changes of the clock."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from bisector.app.series.night_times import check_times, times_after
from bisector.errors import RequestError


def days(cron: str, zone: str, after: str, count: int = 3) -> list[str]:
    start = datetime.fromisoformat(after).replace(tzinfo=UTC).timestamp()
    found = itertools.islice(times_after(cron, zone, start), count)
    return [datetime.fromtimestamp(at, ZoneInfo(zone)).strftime("%d. %H:%M %z") for at in found]


def test_a_time_that_does_not_exist_is_as_soon_as_the_clock_has_jumped() -> None:
    assert days("30 2 * * *", "Europe/Berlin", "2026-03-27 12:00") == [
        "28. 02:30 +0100",
        "29. 03:00 +0200",
        "30. 02:30 +0200",
    ]


def test_a_time_that_comes_twice_is_once() -> None:
    assert days("30 2 * * *", "Europe/Berlin", "2026-10-24 12:00") == [
        "25. 02:30 +0200",
        "26. 02:30 +0100",
        "27. 02:30 +0100",
    ]


def test_a_worker_that_starts_between_the_two_times_makes_no_second_night() -> None:
    """The chore asks for what comes after the last night: 02:30 of summer time was 00:30 UTC."""
    for after in ("2026-10-25 00:30", "2026-10-25 01:00", "2026-10-25 01:29"):
        assert days("30 2 * * *", "Europe/Berlin", after, 1) == ["26. 02:30 +0100"], after
    assert days("30 2 * * *", "Europe/Berlin", "2026-03-29 01:00", 1) == ["30. 02:30 +0200"]


def test_a_night_that_is_due_within_the_minute_is_not_left_out() -> None:
    assert days("30 2 * * *", "UTC", "2026-11-22 02:29:30", 2) == ["22. 02:30 +0000", "23. 02:30 +0000"]
    assert days("30 2 * * *", "UTC", "2026-11-22 02:30:00", 1) == ["23. 02:30 +0000"]


def test_the_zone_is_that_of_the_series_and_not_of_this_machine() -> None:
    assert days("0 1 * * MON", "Asia/Kolkata", "2026-11-22 12:00", 1) == ["23. 01:00 +0530"]


@pytest.mark.parametrize(
    ("cron", "zone", "words"),
    [
        ("0 0 30 2 *", "UTC", "'0 0 30 2 \\*' is not a time that ever comes"),
        ("61 * * * *", "UTC", "Bad minute"),
        ("0 0 * *", "UTC", "has not five fields"),
        ("", "UTC", "has not five fields"),
        ("* * * * * *", "UTC", "has not five fields"),
        ("0 0 * * *", "Europe/Berln", "no time zone 'Europe/Berln'; did you mean 'Europe/Berlin'"),
        ("0 0 * * *", "../../etc/passwd", "there is no time zone"),
        ("0 0 * * *", "", "there is no time zone"),
    ],
)
def test_what_never_comes_is_refused(cron: str, zone: str, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        check_times(cron, zone, 0.0)
