"""Machines are given back when a visit ends, however it ends; those that fail are taken out of use."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.app import bisections
from bisector.engine import trial_runner
from bisector.engine.bisection_run import BisectionRun
from bisector.engine.events import Event
from bisector.errors import InfrastructureError, Interrupted, MachineInUse, PerfbisectError
from bisector.model.decisions import Ending
from bisector.testing.fake_testbed import FakeTestbed
from bisector.testing.fakes import Faults
from tests.support import fake_bisection as fake


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_runner, "_PAUSE_SECONDS", 0.01)


class Bench:
    """A bisection on one machine; what is suspect is noted."""

    def __init__(self, folder: Path, faults: Faults | None = None, *, machine: bool = True) -> None:
        self.folder = folder
        self.lab, self.stop = fake.a_lab(), threading.Event()
        store = SqlStore(open_state_file(folder / "perfbisect.sqlite"))
        self.machine = FakeTestbed("fake", self.lab, faults=faults, has_own_kernel=machine)
        self.suspects: list[tuple[str, str]] = []
        self.events: list[Event] = []
        self.services = replace(
            fake.services(self.lab, folder, store=store),
            testbeds={"fake": self.machine},
            suspect=lambda testbed, reason: self.suspects.append((testbed, reason)),
            stop=self.stop,
        )
        self.stored = fake.begin(store, self.lab)

    def run(self) -> Ending:
        return bisections.run(self.stored, self.services, self.tell, self.stop).ending

    def tell(self, event: Event) -> None:
        self.events.append(event)


def test_a_machine_is_given_back_once_at_the_end(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert bench.run() is Ending.CULPRIT
    assert bench.machine.given_back == 1, "not between two boots"
    assert bench.suspects == []


def test_guests_are_not(tmp_path: Path) -> None:
    bench = Bench(tmp_path, machine=False)
    bench.run()
    assert bench.machine.given_back == 0


def test_a_machine_is_given_back_when_told_to_stop(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    def tell(event: Event) -> None:
        if event.kind == "run":
            bench.stop.set()

    bench.tell = tell  # type: ignore[method-assign]
    with pytest.raises(Interrupted):
        bench.run()
    assert bench.machine.given_back == 1


@pytest.mark.parametrize(
    ("error", "suspect"),
    [(InfrastructureError("no power"), True), (MachineInUse("in use"), False)],
)
def test_a_machine_that_fails_three_times_is_given_back_and_suspect(
    tmp_path: Path, error: PerfbisectError, suspect: bool
) -> None:
    bench = Bench(tmp_path, Faults(boot=dict.fromkeys(range(2, 99), error)))
    with pytest.raises(InfrastructureError, match=error.message):
        bench.run()
    assert bench.machine.given_back == 1
    assert bench.suspects == ([("fake", "no power")] if suspect else [])
    assert bench.services.store.status(bench.stored.id) == "failed", "and can be resumed"


def test_what_is_not_given_back_is_told_and_suspect_and_spoils_no_result(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Faults(give_back={1: InfrastructureError("it stays dark")}))
    assert bench.run() is Ending.CULPRIT
    assert bench.suspects == [("fake", "it stays dark")]
    assert [e.text for e in bench.events if e.kind == "trouble"] == ["it stays dark"]


def test_a_process_that_counts_as_dead_leaves_the_machine_to_the_next(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.services.store.set_status(bench.stored.id, "queued")
    run = BisectionRun(
        bench.stored.id, lambda: (bench.stored, bench.services), bench.tell, bench.stop, ["fake"]
    )

    def tell(event: Event) -> None:
        if event.kind == "run":
            run.abandon()

    bench.tell = tell  # type: ignore[method-assign]
    run._on_event = tell
    run.visit("fake", lambda: False)
    assert bench.machine.boots == 1
    assert bench.machine.given_back == 0
