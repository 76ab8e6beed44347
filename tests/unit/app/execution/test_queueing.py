"""What rests, and what a killed process has left, is queued; what somebody executes is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.app.execution.queueing import queue_bisection
from bisector.app.operations.local_operations import LocalOperations
from bisector.app.wiring import Wiring
from bisector.engine import waiting
from bisector.engine.state_lock import lock
from bisector.interfaces.cli import run
from bisector.model.leases import TestbedState
from bisector.model.stored_bisection import OPEN, Action
from bisector.schemas.settings import load_settings
from tests.support import fake_bisection as fake
from tests.support.command_line import START, Bench, said


@pytest.fixture
def wiring(own_folders: Path) -> Wiring:
    return Wiring(load_settings())


def left_by_a_killed_start(wiring: Wiring, bisection: str) -> None:
    wiring.store.set_status(bisection, "running")
    marks = wiring.settings.state_dir / "waiting"
    marks.mkdir(exist_ok=True)
    (marks / bisection).touch()


@pytest.mark.parametrize("status", OPEN)
def test_whatever_is_not_over_is_queued(wiring: Wiring, status: str) -> None:
    stored = fake.begin(wiring.store, fake.a_lab())
    wiring.store.set_status(stored.id, status)
    queue_bisection(wiring, wiring.store.load(stored.id), Action("resumed", "me@here", "why not"))
    found = wiring.store.load(stored.id)
    assert found.status == "queued"
    by = found.action.by if found.action is not None else ""
    assert by == ("" if status == "queued" else "me@here")


def test_what_is_executed_or_over_stays_as_it_is(wiring: Wiring) -> None:
    stored = fake.begin(wiring.store, fake.a_lab())
    for status in ("running", "done", "cancelled"):
        wiring.store.set_status(stored.id, status)
        with lock(wiring.settings.state_dir, stored.id):
            queue_bisection(wiring, wiring.store.load(stored.id))
        assert wiring.store.status(stored.id) == status


@pytest.mark.parametrize("state", ["retired", "maintenance"])
def test_who_queues_is_told_of_a_testbed_that_is_out_of_use(
    bench: Bench, capsys: pytest.CaptureFixture[str], state: TestbedState
) -> None:
    """Nobody watches it wait for a testbed that never comes."""
    assert run([*START, "--detach"]) == 0
    assert "is not used now" not in capsys.readouterr().err
    wiring = Wiring(load_settings())
    wiring.coordinator.set_testbed("fake", state, "fans are broken", "ann@lab")
    assert run([*START, "--detach"]) == 0
    told = f"note: the testbed 'fake' is not used now: {state}: fans are broken (ann@lab)\n"
    assert told in capsys.readouterr().err


def test_what_somebody_took_up_since_we_looked_stays_with_them(wiring: Wiring) -> None:
    stored = fake.begin(wiring.store, fake.a_lab())
    wiring.store.set_status(stored.id, "interrupted")
    seen = wiring.store.load(stored.id)
    wiring.store.set_status(stored.id, "running")
    queue_bisection(wiring, seen)
    assert wiring.store.status(stored.id) == "running"


def test_after_a_killed_start_a_worker_goes_on_with_what_was_queued(
    bench: Bench, wiring: Wiring, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was called queued and was not: a worker set it aside as 'interrupted', as its own start's."""
    name = said(capsys, *START, "--detach").split()[0]
    for queued_again in (
        lambda: said(capsys, *START, "--detach"),
        lambda: LocalOperations(wiring).resume(name, ""),
    ):
        left_by_a_killed_start(wiring, name)
        queued_again()
        assert wiring.store.status(name) == "queued"
        wiring.store.set_status(name, "running")  # by a worker that is killed, too
        waiting.recover(wiring.store, wiring.settings.state_dir)
        assert wiring.store.status(name) == "queued"
