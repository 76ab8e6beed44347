"""A stop of this process counts for little; time in which it ran counts in full."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

from bisector.adapters.system import awake_clock

WATCHER = """
import sys, time
from bisector.adapters.agent.cpu_deadline import CpuDeadline
from bisector.adapters.system import awake_clock
awake_clock._TICK_SECONDS, awake_clock._GAP_SECONDS = 0.02, 0.2
deadline, before = CpuDeadline(1.0, lambda: None), time.monotonic()
print("watching", flush=True)
sys.stdin.readline()  # stopped and continued meanwhile
print(deadline.expired(), time.monotonic() - before > 1.0, flush=True)
while not deadline.expired():
    time.sleep(0.01)
print("expired", flush=True)
"""


def test_a_deadline_does_not_pass_while_its_watcher_is_stopped() -> None:
    """The real thing: SIGSTOP for longer than the deadline, then SIGCONT; afterwards it passes as usual."""
    process = subprocess.Popen(
        [sys.executable, "-c", WATCHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "watching\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.3)
        process.stdin.write("\n")
        process.stdin.flush()
        process.send_signal(signal.SIGCONT)
        assert process.stdout.readline() == "False True\n"
        assert process.stdout.readline() == "expired\n"
    finally:
        process.kill()
        process.communicate()


class _Time:
    """The clock and the watching thread, both moved by hand.

    Threads that are there already, such as the watcher of the process's own clock, keep the real time.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.others = {*threading.enumerate()} - {threading.current_thread()}
        self.now = 1000.0
        self.tick = threading.Semaphore(0)
        self.ticked = threading.Semaphore(0)
        monkeypatch.setattr(awake_clock, "time", self)

    def monotonic(self) -> float:
        return time.monotonic() if threading.current_thread() in self.others else self.now

    def sleep(self, seconds: float) -> None:
        if threading.current_thread() in self.others:
            time.sleep(seconds)
            return
        self.ticked.release()
        self.tick.acquire()

    def look(self) -> None:
        """Let the thread look once."""
        self.tick.release()
        assert self.ticked.acquire(timeout=20)


@pytest.fixture(autouse=True)
def own_clock_runs() -> None:
    """Begin each test as it is among others: with the process's own clock and its thread."""
    awake_clock.awake_seconds()


def test_it_runs_with_the_monotonic_clock_while_the_thread_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved = _Time(monkeypatch)
    clock = awake_clock._AwakeClock()
    started = clock.seconds()
    assert moved.ticked.acquire(timeout=20)
    for _ in range(10):
        moved.now += awake_clock._GAP_SECONDS
        moved.look()
    assert clock.seconds() - started == pytest.approx(10 * awake_clock._GAP_SECONDS)


def test_a_stop_counts_for_the_gap_alone_whoever_looks_first_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved = _Time(monkeypatch)
    clock = awake_clock._AwakeClock()
    started = clock.seconds()
    assert moved.ticked.acquire(timeout=20)
    for stop in (1, 2):
        moved.now += 3600.0
        before = clock.seconds()  # the thread has not looked yet
        moved.look()
        assert before == clock.seconds()
        assert before - started == pytest.approx(stop * awake_clock._GAP_SECONDS)


def test_without_its_thread_as_in_a_forked_child_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = _Time(monkeypatch)
    clock = awake_clock._AwakeClock()
    started = clock.seconds()
    clock._thread = threading.Thread()  # never started: not alive
    moved.now += 60.0
    clock.seconds()
    moved.now += 1.0
    assert clock.seconds() - started >= 1.0
