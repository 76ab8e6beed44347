"""Machines are given back when a visit ends, however it ends; those that fail are taken out of use."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.app import bisections
from bisector.engine import executor, trial_runner
from bisector.engine.bisection_run import BisectionRun
from bisector.engine.events import Event
from bisector.engine.sharing import TestbedSharing
from bisector.errors import InfrastructureError, Interrupted, MachineInUse, NoKernelRan, PerfbisectError
from bisector.model.decisions import Ending
from bisector.ports import Job, Kernel, Progress
from bisector.testing.fake_testbed import FakeSession, FakeTestbed
from bisector.testing.fakes import Faults, Pace
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
        )
        self.stored = fake.begin(store, self.lab)

    def run(self) -> Ending:
        return bisections.run(self.stored, self.services, self.tell, self.stop).ending

    def tell(self, event: Event) -> None:
        self.events.append(event)

    def interrupt(self) -> None:
        """Tell it to stop, and what it runs at once: a fake search is over before the executor looks."""
        self.stop.set()
        self.services.stop.set()


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
            bench.interrupt()

    bench.tell = tell  # type: ignore[method-assign]
    with pytest.raises(Interrupted):
        bench.run()
    assert bench.machine.given_back == 1


@pytest.mark.parametrize(
    ("error", "suspect"),
    [
        (InfrastructureError("no power"), True),
        (MachineInUse("in use"), False),
        (NoKernelRan("cannot boot the kernel"), False),
    ],
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


def slow(bench: Bench, seconds: float, when_asked: Callable[[], object] = lambda: None) -> None:
    """Have the machine take its time to come back; it gives up where it is another's."""

    def give_back(progress: Progress, stop: Callable[[], bool] = lambda: False) -> None:
        when_asked()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if stop():
                raise Interrupted("another's")
            time.sleep(0.01)
        bench.machine.given_back += 1

    bench.machine.give_back = give_back  # type: ignore[method-assign]


@pytest.mark.parametrize("booting", [0.0, 1.5])
def test_a_machine_is_waited_for_however_long_its_boot_and_its_return_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, booting: float
) -> None:
    monkeypatch.setattr(executor, "_SHUTDOWN_SECONDS", 0.1)
    bench = Bench(tmp_path)
    bench.machine.pace = Pace(boot=booting)
    slow(bench, 1.0)
    bench.tell = lambda event: bench.interrupt() if event.kind in ("build", "run") else None  # type: ignore[method-assign]
    with pytest.raises(Interrupted):
        bench.run()
    assert bench.machine.given_back == 1


@pytest.mark.parametrize("concluded", [False, True])
def test_a_second_interrupt_says_what_is_left_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, concluded: bool
) -> None:
    bench = Bench(tmp_path)
    asked = threading.Event()
    slow(bench, 60.0, asked.set)

    def wait(sharing: TestbedSharing, seconds: float) -> None:
        sharing._changed.wait(seconds)
        if asked.is_set():
            raise KeyboardInterrupt

    monkeypatch.setattr(TestbedSharing, "wait", wait)
    last = "done" if concluded else "run"
    bench.tell = lambda event: bench.interrupt() if event.kind == last else None  # type: ignore[method-assign]
    with pytest.raises(Interrupted, match="ended at once: fake is not given back") as left:
        bench.run()
    assert "may still run there" in left.value.details
    assert (f"perfbisect resume {bench.stored.id}" in left.value.cure) == (not concluded)
    assert (
        "uses it next, brings it back" if not concluded else "uses it next brings it back"
    ) in left.value.cure
    assert bench.machine.given_back == 0


def test_a_machine_that_becomes_anothers_while_it_is_given_back_is_left_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.services.store.set_status(bench.stored.id, "queued")
    run = BisectionRun(
        bench.stored.id, lambda: (bench.stored, bench.services), bench.tell, bench.stop, ["fake"]
    )
    slow(bench, 60.0, run.abandon)
    run.visit("fake", lambda: False)
    assert bench.machine.given_back == 0
    assert bench.suspects == []
    assert not run.to_give_back


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


class Breaking(FakeTestbed):
    """A machine whose second boot meets a defect of ours; it takes a second to be given back."""

    when_broken: Callable[[], object] = list

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> FakeSession:
        if self.boots:
            raise RuntimeError("a defect")
        return super().boot(kernel, job, folder, progress)

    def give_back(self, progress: Progress, stop: Callable[[], bool] = lambda: False) -> None:
        self.when_broken()
        time.sleep(1.0)
        super().give_back(progress, stop)


def test_what_ends_a_bisection_on_one_machine_ends_it_on_others_before_that_is_given_back(
    tmp_path: Path,
) -> None:
    """Another machine must not begin trials, nor try those again that are cut, nor be blamed for them."""
    bench = Bench(tmp_path)
    broken = Breaking("broken", bench.lab, has_own_kernel=True)
    other = FakeTestbed("other", bench.lab, has_own_kernel=True, pace=Pace(boot=0.2))
    since: list[Event] = []
    broken.when_broken = since.clear
    bench.tell = lambda event: since.append(event)  # type: ignore[method-assign]
    bench.services = replace(bench.services, testbeds={"broken": broken, "other": other})
    bench.stored = fake.begin(bench.services.store, bench.lab, ("broken", "other"))
    with pytest.raises(InfrastructureError, match="a defect"):
        bench.run()
    assert [event.text for event in since if event.testbed == "other" and event.kind != "boot"] == []
    assert (broken.given_back, other.given_back, bench.suspects) == (1, 1, [])
