"""When a check is made: before work after a pause, once a day, and again where a testbed did not boot."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.app.execution import health_schedule
from bisector.app.execution.health_check import Health
from bisector.app.execution.health_schedule import (
    DAY_SECONDS,
    HOUR_SECONDS,
    RECHECK_SECONDS,
    HealthChecks,
    checks_for,
)
from bisector.app.wiring import Wiring
from bisector.errors import BuildFailed, InfrastructureError, Interrupted
from bisector.model.machines.health import CHECKED_BY, HealthPoint, Outcome
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.request import Accepted, read_accepted
from bisector.schemas.settings import Settings
from tests.support import fake_bisection as fake


class Bench:
    """Checks of the testbed 'bed' at times that a test sets; `outcome` is what the next one finds."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.made, self.outcome = 1e9, 0, "sound"
        self.error: Exception | None = None
        self.points_: list[HealthPoint] = []
        self.used_at: float | None = None
        self.coordinator = MemoryCoordinator(lambda: self.now)
        self.told: list[str] = []
        self.wiring = wiring = Wiring(Settings(state_dir=folder / "state", lock_dir=folder / "locks"))
        wiring.__dict__.update(coordinator=self.coordinator)
        monkeypatch.setattr(health_schedule, "health_store", lambda wiring: self)
        variables = {"bed": {"perfbisect_kind": "local"}}
        wiring.lab = lab_from_inventory(
            {"_meta": {"hostvars": variables}, "testbeds": {"hosts": ["bed"]}}, folder / "lab.yml"
        )
        self.bisection = fake.begin(wiring.store, fake.a_lab()).id
        monkeypatch.setattr(health_schedule, "check_health", self._check)
        monkeypatch.setattr(health_schedule, "_ASK_SECONDS", -1.0)
        self.checks = HealthChecks(wiring)

    def points(self, testbed: str) -> list[HealthPoint]:
        return self.points_

    def note_use(self, testbed: str) -> None:
        self.used_at = self.now

    def last_use(self, testbed: str) -> float | None:
        return self.used_at

    def _check(self, wiring: Wiring, testbed: str, note: object, stop: object, accepted: Accepted) -> Health:
        self.made += 1
        self.accepted = accepted
        if self.error is not None:
            raise self.error
        outcome: Outcome = self.outcome  # type: ignore[assignment]
        self.points_.append(HealthPoint(testbed, self.now, {}, outcome, ""))
        state = "good" if outcome == "sound" else "suspect"
        self.coordinator.set_testbed(testbed, state, outcome, CHECKED_BY)  # type: ignore[arg-type]
        return Health(testbed, outcome, "", {}, (), None, state)

    def visit(self) -> bool:
        """Use the testbed, if it passes."""
        passes = self.checks.passes("bed", self.bisection, self.told.append, lambda: False)
        if passes:
            self.checks.used("bed")
        return passes


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def test_a_check_comes_first_and_again_after_a_pause_or_a_day(bench: Bench) -> None:
    assert bench.visit() and bench.visit()
    assert bench.made == 1
    for _ in range(6):
        bench.now += HOUR_SECONDS
        assert bench.visit()
    assert bench.made == 1, "it is in use"
    bench.now += 8 * HOUR_SECONDS
    assert bench.visit()
    assert bench.made == 2, "it was unused for eight hours"
    for _ in range(5):
        bench.now += 5 * HOUR_SECONDS
        bench.visit()
    assert bench.made == 3, "once a day while it is in use"


def test_a_long_visit_is_left_once_a_day(bench: Bench) -> None:
    bench.visit()
    bench.now += DAY_SECONDS - 1
    assert not bench.checks.is_due("bed")
    bench.now += 1
    assert bench.checks.is_due("bed")
    bench.visit()
    assert not bench.checks.is_due("bed")


def test_a_testbed_that_fails_is_left_alone_until_a_person_releases_it(bench: Bench) -> None:
    bench.outcome = "moved"
    assert not bench.visit() and not bench.visit()
    bench.now += DAY_SECONDS
    assert not bench.checks.is_recheck_due("bed")
    bench.coordinator.set_testbed("bed", "good", "", "bob")
    bench.outcome = "sound"
    assert bench.visit()


def test_one_that_did_not_boot_is_tried_again_and_returns(bench: Bench) -> None:
    bench.outcome = "failed"
    assert not bench.visit()
    assert not bench.checks.is_recheck_due("bed"), "somebody may be at work there"
    bench.now += RECHECK_SECONDS
    assert bench.checks.is_recheck_due("bed")
    bench.outcome = "sound"
    assert bench.visit()
    assert not bench.checks.is_recheck_due("bed")


@pytest.mark.parametrize(
    "say",
    [
        lambda c: c.set_testbed("bed", "suspect", "it smells", "bob"),
        lambda c: c.set_testbed("bed", "maintenance", "", "bob"),
        lambda c: c.reserve("bed", "ann", end=2e9),
    ],
    ids=["suspect by a person", "maintenance", "reserved"],
)
def test_what_people_said_is_not_overruled(bench: Bench, say: Callable[[MemoryCoordinator], object]) -> None:
    bench.outcome = "failed"
    bench.visit()
    say(bench.coordinator)
    bench.now += RECHECK_SECONDS
    made = bench.made
    assert not bench.checks.is_recheck_due("bed")
    bench.now += 1
    if bench.coordinator.reservations():
        bench.coordinator.set_testbed("bed", "good", "", "bob")
    assert not bench.visit() or bench.made == made


@pytest.mark.parametrize("error", [BuildFailed("no compiler"), ValueError("a defect")])
def test_what_cannot_be_checked_is_told_once_and_used(bench: Bench, error: Exception) -> None:
    bench.error = error
    assert bench.visit() and bench.visit()
    assert bench.made == 1
    assert f"the testbed 'bed' could not be checked: {error}" in bench.told[-1].replace("ValueError: ", "")


def test_a_check_that_is_stopped_lets_nobody_in(bench: Bench) -> None:
    bench.error = Interrupted("stopped")
    assert not bench.visit()
    assert bench.told == ["a health check of the testbed 'bed' comes first; no cap or budget counts it"]


def test_while_the_database_is_away_nobody_is_let_in(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise InfrastructureError("the database is away")

    monkeypatch.setattr(bench.coordinator, "testbeds", away)
    assert not bench.visit()
    assert bench.told == ["the testbed 'bed' could not be checked: the database is away"]


def test_who_has_reserved_a_testbed_may_use_it_and_a_worker_may_not(bench: Bench) -> None:
    bench.visit()
    settings = bench.wiring.settings.model_copy(update={"health_checks": "always"})
    bench.wiring.settings = settings
    bench.coordinator.reserve("bed", settings.owner, end=2e9)

    def passes(worker: str) -> bool:
        checks = checks_for(bench.wiring, worker)
        return checks.passes("bed", bench.bisection, bench.told.append, lambda: False)

    assert [passes(worker) for worker in ("", "north")] == [True, False]


def test_the_database_is_not_asked_at_each_look(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.visit()
    monkeypatch.setattr(health_schedule, "_ASK_SECONDS", 60.0)
    assert not bench.checks.is_due("bed")
    bench.now += DAY_SECONDS
    started = time.monotonic()
    assert not bench.checks.is_due("bed")
    assert time.monotonic() - started < 30


def test_what_is_due_is_asked_anew_after_a_check(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the visit that follows would be left at once for another one."""
    monkeypatch.setattr(health_schedule, "_ASK_SECONDS", 60.0)
    assert bench.checks.is_due("bed") and not bench.checks.is_recheck_due("bed")
    bench.visit()
    assert not bench.checks.is_due("bed")


def test_during_a_check_the_testbed_is_held_and_the_bisection_is_known(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[str] = []
    check = bench._check

    @contextmanager
    def claim(wiring: Wiring, name: str, *_: object) -> Iterator[None]:
        held.append(name)
        yield
        held.remove(name)

    def held_check(*given: Any) -> Health:
        assert held == ["bed"]
        return check(*given)

    monkeypatch.setattr(Wiring, "claim_testbed", claim)
    monkeypatch.setattr(health_schedule, "check_health", held_check)
    assert bench.visit() and bench.made == 1
    request = bench.wiring.store.load(bench.bisection).request
    assert bench.accepted == read_accepted(request)


def test_a_sound_testbed_that_a_person_took_meanwhile_is_not_used(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        health_schedule,
        "check_health",
        lambda *_: Health("bed", "sound", "", {}, (), None, "maintenance"),
    )
    assert not bench.visit()


def test_a_visit_whose_end_was_not_recorded_is_no_pause_since_the_check(bench: Bench) -> None:
    for _ in range(2):
        assert bench.checks.passes("bed", bench.bisection, bench.told.append, lambda: False)
        bench.now += HOUR_SECONDS
    assert bench.made == 1


def test_a_database_that_is_away_makes_nothing_due_and_loses_a_note_of_use_only(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise InfrastructureError("the database is away")

    monkeypatch.setattr(bench, "points", away)
    monkeypatch.setattr(bench, "note_use", away)
    assert not bench.checks.is_due("bed") and not bench.checks.is_recheck_due("bed")
    bench.checks.used("bed")


def test_who_has_reserved_a_testbed_that_did_not_boot_has_it_checked_again(bench: Bench) -> None:
    bench.outcome = "failed"
    bench.visit()
    bench.now += RECHECK_SECONDS
    bench.coordinator.reserve("bed", "ann", end=2e9)
    due = [HealthChecks(bench.wiring, who).is_recheck_due("bed") for who in ("ann", "")]
    assert due == [True, False]


@pytest.mark.parametrize(
    ("wanted", "worker", "start"),
    [("workers", True, False), ("always", True, True), ("never", False, False)],
)
def test_workers_check_and_start_only_where_settings_say_so(wanted: str, worker: bool, start: bool) -> None:
    wiring = Wiring(Settings.model_validate({"health_checks": wanted}))
    made = [isinstance(checks_for(wiring, name), HealthChecks) for name in ("north", "")]
    assert made == [worker, start]
