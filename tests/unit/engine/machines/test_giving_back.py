"""Machines are given back when a visit ends, however it ends; those that fail are taken out of use."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.app import bisections
from bisector.engine import executor, membership, trial_runner
from bisector.engine.bisection_run import BisectionRun
from bisector.engine.events import Event, EventSender
from bisector.engine.machines import giving_back
from bisector.engine.sharing import TestbedSharing
from bisector.errors import (
    FirmwareChanged,
    InfrastructureError,
    Interrupted,
    MachineInUse,
    NoKernelRan,
    OtherOwnKernel,
    PerfbisectError,
)
from bisector.model.decisions import Ending
from bisector.model.leases import Lease
from bisector.model.state import Costs
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
        self.left: set[str] = set()
        self.events: list[Event] = []
        self.services = replace(
            fake.services(self.lab, folder, store=store),
            testbeds={"fake": self.machine},
            suspect=lambda testbed, reason: self.suspects.append((testbed, reason)),
            left=lambda testbed: testbed in self.left,
        )
        self.stored = fake.begin(store, self.lab)

    def run(self) -> Ending:
        return bisections.run(self.stored, self.services, self.tell, self.stop).ending

    def tell(self, event: Event) -> None:
        self.events.append(event)

    @property
    def troubles(self) -> list[str]:
        return [event.text for event in self.events if event.kind == "trouble"]

    def run_anew(self) -> None:
        """Run it once more, as the process that comes after one that was killed."""
        self.stored, self.events = self.services.store.load(self.stored.id), []
        self.machine.given_back = self.machine.boots = 0
        self.run()

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


def test_a_guest_that_fails_three_times_is_set_aside_and_not_suspect(tmp_path: Path) -> None:
    """Nothing there would be looked at: the next boot has another guest."""
    lost = dict.fromkeys(range(2, 99), InfrastructureError("no libvirt"))
    bench = Bench(tmp_path, Faults(boot=lost), machine=False)
    with pytest.raises(InfrastructureError, match="no libvirt"):
        bench.run()
    assert bench.suspects == []


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
        (FirmwareChanged("the firmware changed"), False),  # who updated it knows
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


@pytest.mark.parametrize(
    ("error", "suspect"),
    [
        (InfrastructureError("it stays dark"), True),
        (OtherOwnKernel("it has another kernel", cure="boot the old one"), False),
    ],
)
def test_what_is_not_given_back_is_told_and_suspect_and_spoils_no_result(
    tmp_path: Path, error: InfrastructureError, suspect: bool
) -> None:
    bench = Bench(tmp_path, Faults(give_back={1: error}))
    assert bench.run() is Ending.CULPRIT
    assert bench.suspects == ([("fake", error.message)] if suspect else [])
    assert bench.troubles == [error.message if suspect else f"{error.message}; {error.cure}"]


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
    assert (
        f"'perfbisect resume {bench.stored.id}', or whoever uses it next, brings it back" in left.value.cure
    )
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


def test_a_return_that_is_stopped_is_neither_trouble_nor_a_suspect(tmp_path: Path) -> None:
    """Whoever has the machine by now goes on with it."""
    bench = Bench(tmp_path, Faults(give_back={1: Interrupted("stopped while 'fake' was brought back")}))
    giving_back.give_back(bench.services, EventSender(bench.tell, Costs), "fake")
    assert (bench.suspects, bench.troubles) == ([], [])


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
    troubles: list[str] = []
    boots: list[int] = []
    broken.when_broken = lambda: boots.append(other.boots)
    bench.tell = lambda event: troubles.append(event.text) if event.kind == "trouble" else None  # type: ignore[method-assign]
    bench.services = replace(bench.services, testbeds={"broken": broken, "other": other})
    bench.stored = fake.begin(bench.services.store, bench.lab, ("broken", "other"))
    with pytest.raises(InfrastructureError, match="a defect"):
        bench.run()
    # One may have been about to begin; in the second until the broken one is given back there would be more.
    assert other.boots - boots[0] <= 1
    assert troubles == []
    assert (broken.given_back, other.given_back, bench.suspects) == (1, 1, [])


# --- left by a process that was killed ----------------------------------------------------------------------


def test_a_search_that_concludes_at_once_gives_the_machine_back_that_it_does_not_boot(tmp_path: Path) -> None:
    """Killed after its last run."""
    bench = Bench(tmp_path)
    bench.run()
    store = SqlStore(open_state_file(tmp_path / "killed.sqlite"))
    store.create(bench.stored, [record for _, record in bench.services.store.records(bench.stored.id)])
    bench.services = replace(bench.services, store=store)
    bench.run_anew()
    assert (bench.machine.boots, bench.machine.given_back) == (0, 1)


@pytest.mark.parametrize("left", [True, False])
def test_resume_gives_back_what_was_left_when_the_end_was_written_already(tmp_path: Path, left: bool) -> None:
    bench = Bench(tmp_path)
    bench.run()
    bench.left = {"fake", "another"} if left else set()
    bench.run_anew()
    assert (bench.machine.given_back, bench.troubles) == (int(left), [])


def test_a_machine_that_was_left_and_stays_dark_is_told_and_suspect(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Faults(give_back={2: InfrastructureError("it stays dark")}))
    bench.run()
    bench.left = {"fake"}
    bench.run_anew()
    assert (bench.troubles, bench.suspects) == (["it stays dark"], [("fake", "it stays dark")])


@contextmanager
def taken(name: str, progress: Progress, stop: Callable[[], bool]) -> Iterator[Callable[[], bool]]:
    """Services.claim of a testbed that another process has."""
    if stop():
        raise Interrupted("stopped while waiting")
    yield lambda: False


def test_a_machine_that_was_left_and_must_not_be_used_is_told_with_the_way_to_give_it_back(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    bench.run()
    bench.left, services = {"fake"}, bench.services
    for use, why in (
        (replace(services, why_not=lambda testbed: "suspect: no power"), "suspect: no power"),
        (replace(services, claim=taken), "another perfbisect of this machine has it"),
    ):
        bench.services = use
        bench.run_anew()
        assert bench.machine.given_back == 0
        assert bench.troubles == [
            f"'fake' was left behind by a perfbisect that was killed, and is not given back: {why}; "
            f"later: perfbisect resume {bench.stored.id}"
        ]


@pytest.mark.parametrize("dies", [True, False])
def test_the_lease_of_the_process_that_was_killed_is_waited_for_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: bool
) -> None:
    monkeypatch.setattr(giving_back, "_ASK_SECONDS", 0.01)
    monkeypatch.setattr(giving_back, "_LEASE_SECONDS", 60.0 if dies else 0.1)
    bench, coordinator = Bench(tmp_path), MemoryCoordinator(time.time)
    bench.run()
    coordinator.register("killed-1", "killed")
    coordinator.acquire(membership.testbed_resource("fake"), "killed-1")
    bench.left, bench.services = {"fake"}, replace(bench.services, coordinator=coordinator)
    asked = 0

    def acquire(resource: str, executor: str) -> Lease | None:
        nonlocal asked
        asked += 1
        if dies and asked == 3:
            coordinator.unregister("killed-1")
        return MemoryCoordinator.acquire(coordinator, resource, executor)

    monkeypatch.setattr(coordinator, "acquire", acquire)
    bench.run_anew()
    assert bench.machine.given_back == int(dies)
    assert [lease.executor for lease in coordinator.leases()] == ([] if dies else ["killed-1"])
    assert [("'killed' (last heard of" in text) for text in bench.troubles] == [True] * (not dies)


def test_a_database_that_is_away_spoils_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, coordinator = Bench(tmp_path), MemoryCoordinator(time.time)
    bench.run()

    def register(*_: str) -> None:
        raise InfrastructureError("the database does not answer")

    monkeypatch.setattr(coordinator, "register", register)
    bench.left, bench.services = {"fake"}, replace(bench.services, coordinator=coordinator)
    bench.run_anew()
    assert bench.troubles == ["the database does not answer"]


def test_the_end_of_a_search_gives_back_what_was_left_of_testbeds_that_it_was_not_given(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    other = FakeTestbed("other", bench.lab, has_own_kernel=True)
    bench.services = replace(
        bench.services,
        testbeds={"fake": bench.machine, "other": other},
        why_not=lambda testbed: (
            None if testbed == "fake" or bench.services.store.status(bench.stored.id) == "done" else "suspect"
        ),
    )
    bench.stored, bench.left = fake.begin(bench.services.store, bench.lab, ("fake", "other")), {"other"}
    assert bench.run() is Ending.CULPRIT
    assert (other.boots, other.given_back, bench.machine.given_back) == (0, 1, 1)
