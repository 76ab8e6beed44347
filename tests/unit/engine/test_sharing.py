"""Two workers of one database share testbeds and bisections; what goes wrong in one ends nobody else's."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import pytest

from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.adapters.store.memory_store import MemoryStore
from bisector.engine import executor, testbed_leases, trial_runner
from bisector.engine.events import Event
from bisector.engine.others import Others
from bisector.engine.services import Services
from bisector.errors import InfrastructureError, PerfbisectError
from bisector.model.records import Booted
from bisector.model.stored_bisection import Stored
from bisector.testing.fakes import Pace
from tests.support import fake_bisection as fake
from tests.support.waiting import until

SECONDS = 60.0


@dataclass
class Workers:
    """Workers of this process. told: by worker, what it told; opened: (worker, bisection)."""

    folder: Path
    told: dict[str, list[str]] = field(default_factory=dict)
    opened: list[tuple[str, str]] = field(default_factory=list)
    broken: dict[str, PerfbisectError] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lab = fake.a_lab()
        self.coordinator = MemoryCoordinator(time.time)
        self.store = MemoryStore(self.coordinator)

    def queue(self, name: str, *testbeds: str) -> None:
        request = fake.accepted(self.lab, testbeds).model_dump_json()
        self.store.create(Stored(name, time.time(), request, "queued", self.lab.graph))

    def start(self, name: str, *ours: str) -> None:
        """Start a worker with testbeds of its own."""
        folder, told = self.folder / name, self.told.setdefault(name, [])
        folder.mkdir()

        def open_(stored: Stored, stop: threading.Event) -> Services:
            self.opened.append((name, stored.id))
            if name in self.broken:
                raise self.broken[name]
            pace = Pace(boot=0.02, run=0.01)
            made = fake.services(self.lab, folder, store=self.store, testbeds=ours, pace=pace)
            return replace(made, coordinator=self.coordinator, stop=stop)

        def tell(bisection: str, event: Event) -> None:
            if event.kind in ("trouble", "note"):
                told.append(event.text)

        def serve() -> None:
            others = Others(
                lambda summary: [bed for bed in summary.testbeds if bed in ours],
                open_,
                tell,
                lambda bisection: None,
            )
            executor.serve(
                self.store,
                folder,
                others,
                self.stop,
                until_idle=False,
                coordinator=self.coordinator,
                name=name,
            )

        self.threads.append(threading.Thread(target=serve, daemon=True))
        self.threads[-1].start()

    def wait(self, *names: str, status: str = "done") -> None:
        until(lambda: all(self.store.status(name) == status for name in names), SECONDS)


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    monkeypatch.setattr(trial_runner, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(executor, "_POLL_SECONDS", 0.02)
    monkeypatch.setattr(testbed_leases, "_ASK_SECONDS", 0.02)
    made = Workers(tmp_path)
    yield made
    made.stop.set()
    for thread in made.threads:
        thread.join(SECONDS)
        assert not thread.is_alive()


def boots(store: MemoryStore, *names: str) -> list[Booted]:
    found = [record for name in names for _, record in store.records(name) if isinstance(record, Booted)]
    return sorted(found, key=lambda booted: booted.at)


def test_a_testbed_that_belongs_to_nobody_passes_from_worker_to_worker(workers: Workers) -> None:
    """Else the worker that has it takes it again each time before the other sees that it is free."""
    workers.queue("x", "a", "only-first")
    workers.queue("y", "a", "only-second")
    workers.start("first", "a", "only-first")
    workers.start("second", "a", "only-second")
    workers.wait("x", "y")
    assert {("first", "x"), ("second", "y")} <= set(workers.opened)
    on_a = [(one, r.boot) for one in "xy" for r in boots(workers.store, one) if r.testbed == "a"]
    users = {
        worker
        for worker in workers.told
        for one, boot in on_a
        if (workers.folder / worker / "bisections" / one / "boots" / boot).is_dir()
    }
    assert users == {"first", "second"}


def test_two_workers_of_one_bisection_do_not_pass_its_only_testbed_on(workers: Workers) -> None:
    """Each hand-over of a machine costs two reboots, and the bisection gains nothing by it."""
    workers.queue("x", "a")
    workers.start("first", "a")
    until(lambda: bool(boots(workers.store, "x")), SECONDS)
    workers.start("second", "a")
    workers.wait("x")
    users = [
        next(w for w in workers.told if (workers.folder / w / "bisections/x/boots" / r.boot).is_dir())
        for r in boots(workers.store, "x")
    ]
    assert len(users) > 6
    assert sum(one != following for one, following in pairwise(users)) <= 1, users


def test_a_testbed_is_not_asked_for_that_the_same_bisection_has_before_its_first_trial(
    workers: Workers,
) -> None:
    """Until a worker has read the history and decided what to measure, no trial is under way."""
    workers.coordinator.register("eve-1", "eve")
    for resource in ("testbed a", "bisection x by eve"):
        assert workers.coordinator.acquire(resource, "eve-1") is not None
    workers.queue("x", "a")
    workers.start("first", "a")
    until(lambda: bool(workers.told["first"]), SECONDS)
    time.sleep(0.2)
    assert workers.told["first"] == ["the bisection 'x' shares the testbeds from now on"]
    assert workers.coordinator.wanted("eve-1") == set()
    workers.coordinator.unregister("eve-1")
    workers.wait("x")


def test_who_waits_for_a_testbed_is_told_who_uses_it(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(testbed_leases, "_SILENT_SECONDS", 0.05)
    workers.coordinator.register("eve-1", "eve")
    assert workers.coordinator.acquire("testbed a", "eve-1") is not None
    workers.queue("x", "a")
    workers.start("first", "a")
    until(lambda: any("waiting" in text for text in workers.told["first"]), SECONDS)
    time.sleep(0.2)
    waits = [text for text in workers.told["first"] if "waiting" in text]
    assert waits == ["waiting for the testbed 'a', which 'eve' (last heard of 0 s ago) uses"]
    assert workers.opened == [], "what it cannot measure yet takes no memory"
    workers.coordinator.unregister("eve-1")
    workers.wait("x")


def test_what_goes_wrong_with_one_worker_goes_on_with_the_others(workers: Workers) -> None:
    workers.broken["first"] = InfrastructureError("no compiler here")
    workers.queue("x", "a", "b")
    workers.start("second", "b")
    until(lambda: ("second", "x") in workers.opened, SECONDS)
    workers.start("first", "a")
    workers.wait("x")
    told = [text for text in workers.told["first"] if "no compiler" in text]
    assert told == ["the bisection 'x' goes on with other workers, not with this one: no compiler here"]
    assert workers.opened.count(("first", "x")) == 1, "it is not tried again and again"
    assert {booted.testbed for booted in boots(workers.store, "x")} == {"b"}


def test_it_fails_when_it_goes_wrong_with_the_last_one(workers: Workers) -> None:
    workers.broken["first"] = workers.broken["second"] = InfrastructureError("no compiler here")
    workers.queue("x", "a", "b")
    workers.start("first", "a")
    workers.start("second", "b")
    workers.wait("x", status="failed")
    workers.broken.clear()
    time.sleep(0.5)  # both see that it has failed; a person takes longer
    workers.store.set_status("x", "queued")
    workers.wait("x")


def test_a_worker_that_ends_leaves_what_others_go_on_with(workers: Workers) -> None:
    workers.queue("x", "a", "b")
    workers.start("first", "a")
    until(lambda: len(boots(workers.store, "x")) > 1, SECONDS)
    statuses: list[str] = []
    set_status = workers.store.set_status

    def note(bisection: str, status: str, *more: object, **rest: object) -> bool:
        changed = set_status(bisection, status, *more, **rest)  # type: ignore[arg-type]
        if changed:  # the other may have ended it before
            statuses.append(status)
        return changed

    ends, workers.stop = workers.stop, threading.Event()
    workers.start("second", "b")
    until(lambda: ("second", "x") in workers.opened, SECONDS)
    workers.store.set_status = note  # type: ignore[method-assign]
    ends.set()
    workers.wait("x")
    assert "queued" not in statuses and "interrupted" not in statuses


def test_what_went_wrong_here_is_tried_again_when_the_others_have_ended(workers: Workers) -> None:
    """Else the worker that is left has given it up for good, and nobody says so."""
    workers.broken["first"] = InfrastructureError("no compiler here")
    workers.queue("x", "a", "b")
    workers.coordinator.register("eve-1", "eve")  # whose testbeds are reserved: it does nothing
    assert workers.coordinator.acquire("bisection x by eve", "eve-1") is not None
    workers.start("first", "a")
    until(lambda: any("goes on with other workers" in text for text in workers.told["first"]), SECONDS)
    assert workers.store.status("x") != "failed"
    workers.coordinator.unregister("eve-1")
    workers.wait("x", status="failed")
    told = [text for text in workers.told["first"] if "no compiler" in text]
    assert told[-1] == "the bisection 'x' failed: no compiler here"
