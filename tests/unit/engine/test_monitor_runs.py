"""Which monitors see a boot, and what is counted unasked. With real records: test_trial_runner.py."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bisector.engine.monitor_runs import job_of_boot, run_monitors
from bisector.errors import TestbedLost
from bisector.model.decisions import Measure, Purpose
from bisector.model.facts import MonitorResult, MonitorValue
from bisector.ports import BootFacts, Counting, Job, Monitor

SEEN = (MonitorValue("schedule", 7.0, "instructions"),)


def job(counting: Counting | None, *monitors: str) -> Job:
    watched = tuple(Monitor(name, ()) for name in monitors)
    return Job("w", Path(), ("run",), (), counting=counting, monitors=watched)


@pytest.mark.parametrize(
    ("purpose", "had", "profiled"),
    [
        ("verify", (), True),
        ("certify", (), True),
        ("search", (), False),
        ("attribute", (), False),
        ("verify", ("counters",), False),
        ("certify", ("proc",), True),
    ],
)
def test_functions_are_counted_unasked_in_what_a_report_compares_and_once(
    purpose: Purpose, had: tuple[str, ...], profiled: bool
) -> None:
    beside, boot = Counting(("LL-misses",), profile=True), Measure(0, 1, purpose, "why")
    found = job_of_boot(job(beside), boot, had).counting
    assert found is not None
    assert (found.metrics, found.profile) == (("LL-misses",), profiled)
    alone = job_of_boot(job(Counting(profile=True)), boot, had).counting
    assert alone == (Counting(profile=True) if profiled else None)  # a boot without the plugin
    asked = job(Counting(profile=True), "counters")
    assert job_of_boot(asked, boot, had) is asked  # its first boot is its profile, whatever it is for
    assert job_of_boot(job(None), boot, had).counting is None


def test_a_boot_gets_other_random_numbers_where_that_was_decided() -> None:
    plain = replace(job(None), environment={"autogroup": "0"})
    trial = Measure(0, 1, "search", "why")
    assert job_of_boot(plain, trial, ()).environment == {"autogroup": "0"}
    asked = job_of_boot(plain, replace(trial, fresh_seed=True), ()).environment
    assert asked == {"autogroup": "0", "seed": "fresh"}


class Session:
    """Answers each monitor, or fails."""

    def __init__(self, *, profiled: bool, error: Exception | None = None, seen: Any = SEEN) -> None:
        self.facts = BootFacts("6.1", "", profiled=profiled)
        self.asked: list[str] = []
        self._error, self._seen = error, seen

    def run_monitor(self, monitor: Monitor) -> MonitorResult:
        self.asked.append(monitor.name)
        if self._error is not None:
            raise self._error
        return MonitorResult(monitor.name, seen=self._seen)


def watched(session: Any, *names: str, had: tuple[str, ...] = ()) -> tuple[list[MonitorResult], list[str]]:
    told: list[str] = []
    monitors = tuple(Monitor(name, ()) for name in names)
    stop = threading.Event()
    return list(run_monitors(session, monitors, had, stop, lambda _, text: told.append(text))), told


def test_what_is_counted_unasked_is_recorded_as_such_and_nobody_is_told() -> None:
    unasked = MonitorResult("counters", seen=SEEN, unasked=True)
    assert watched(Session(profiled=True)) == ([unasked], [])
    assert watched(Session(profiled=False)) == ([], [])
    assert watched(Session(profiled=True), had=("counters",)) == ([], [])
    assert watched(Session(profiled=True, error=TestbedLost("gone"))) == ([], [])
    assert watched(Session(profiled=True, seen=())) == ([], [])  # a kernel without symbols
    found, told = watched(Session(profiled=True), "counters")
    assert [one.unasked for one in found] == [False]
    assert told == ["watching a run with counters"]


def test_monitors_have_their_turn_once_whatever_was_counted_beside() -> None:
    found, _ = watched(Session(profiled=True), "proc", "dmesg", had=("counters",))
    assert [one.monitor for one in found] == ["proc", "dmesg"]
    found, _ = watched(Session(profiled=True), "proc", "dmesg", had=("proc",))  # which broke off
    assert [one.monitor for one in found] == ["counters"]
