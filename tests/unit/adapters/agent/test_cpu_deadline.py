"""When a deadline is extended because the host is overloaded."""

from __future__ import annotations

import pytest

from bisector.adapters.agent import cpu_deadline
from bisector.adapters.agent.cpu_deadline import CpuDeadline, CpuTime


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(cpu_deadline, "awake_seconds", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def expires_after(clock: Clock, cpu_time: CpuTime, timeout: float = 90.0) -> float:
    deadline = CpuDeadline(timeout, cpu_time, clock.now)
    started = clock.now
    while not deadline.expired():
        clock.now += 1.0
    return clock.now - started


@pytest.mark.parametrize(
    ("share", "seconds"),
    [(1.0, 90), (1 / 3, 90), (0.2, 150), (1 / 12, 360), (0.05, 361), (0.0, 361)],
)
def test_a_guest_gets_a_third_of_its_time_as_cpu_time_or_four_times_the_time(
    clock: Clock, share: float, seconds: float
) -> None:
    used_before = 50.0  # by the boot: it does not count for a run
    start = clock.now
    elapsed = expires_after(clock, lambda: used_before + share * (clock.now - start))
    assert elapsed == pytest.approx(seconds, abs=1)


def test_where_cpu_time_is_no_measure_the_deadline_is_the_timeout(clock: Clock) -> None:
    assert expires_after(clock, lambda: None) == 90


def test_a_deadline_may_have_begun_earlier(clock: Clock) -> None:
    deadline = CpuDeadline(10.0, lambda: None, clock.now - 9.5)
    assert not deadline.expired()
    clock.now += 0.5
    assert deadline.expired()
