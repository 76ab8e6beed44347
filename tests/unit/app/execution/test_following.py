"""Watching a bisection that another process executes, and waiting for a turn."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.adapters.store.memory_store import MemoryStore
from bisector.app.execution import following
from bisector.engine import state_lock
from bisector.engine.events import Event
from bisector.engine.state_lock import QUEUE, Holder, find_holder, lock
from bisector.errors import InfrastructureError, Interrupted
from bisector.model.decisions import Conclusion, Ending, Measure
from bisector.model.records import Booted, Built, Left, Ran, RunFailed
from bisector.model.stored_bisection import Action, Stored, failure
from bisector.testing.fakes import METRIC
from tests.support import fake_bisection as fake

CONCLUSION = Conclusion(Ending.NOT_REPRODUCED, "the ends do not differ", ())


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def stored(store: MemoryStore) -> Stored:
    return fake.begin(store, fake.a_lab())


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_FOLLOW_SECONDS", 0.01)
    monkeypatch.setattr(state_lock, "_PROBE_SECONDS", 0.1)


def test_following_tells_what_happens_from_now_on_with_the_totals(
    store: MemoryStore, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_FOLLOW_SECONDS", 0.0)
    name = stored.id
    store.decide(name, Measure(0, 2, "verify", "an old reason"))
    store.decide(name, Measure(3, 2, "search", "the newest reason"))
    for record in (
        Built(0, True, 60.0),
        Booted("b1", 0, "bed", True, 10.0, 1.0),
        Ran("b1", 0, {"real": 1.0}, 2.0, 3.0),
    ):
        store.append(name, record)

    def while_following() -> bool:
        """Let the other process do its work before the second look, and end before the third."""
        looks.append(1)
        if len(looks) == 2:
            store.decide(name, Measure(5, 2, "search", "what comes next"))
            for record in (
                Built(5, False, 7.0, failure="a.c:1: error"),
                Booted("b2", 5, "bed", False, 4.0, 5.0, failure="panic"),
                Booted("b3", 3, "bed", True, 4.0, 6.0),
                Ran("b3", 0, {METRIC: 1.5}, 2.0, 8.0, warmup=True),
                Ran("b3", 1, {METRIC: 1.25}, 2.0, 8.0, flags=("hot",)),
                RunFailed("b1", "code 1"),
                Left("b3"),
            ):
                store.append(name, record)
        if len(looks) == 3:
            store.set_status(name, "done", CONCLUSION)
        return len(looks) < 3

    looks: list[int] = []
    events: list[Event] = []
    assert following.follow(store, name, while_following, events.append) == CONCLUSION
    assert [(e.kind, e.text, e.commit) for e in events] == [
        ("decision", "another process measures", 3),
        ("build", "a.c:1: error", 5),
        ("boot", "panic", 5),
        ("boot", "booted", 3),
        ("warmup", f"warm-up 0: {METRIC} 1.5 s", 3),
        ("run", f"run 1: {METRIC} 1.25 s (not counted: hot)", 3),
        ("trouble", "code 1", 0),
        ("decision", "another process measures", 5),
    ]
    assert (events[0].reason, events[-1].reason) == ("the newest reason", "what comes next")
    assert (events[0].builds, events[0].boots, events[0].runs) == (1, 1, 1)
    assert (events[-1].builds, events[-1].boots, events[-1].runs) == (2, 3, 3)


def test_following_what_stops_without_a_conclusion_says_so(store: MemoryStore, stored: Stored) -> None:
    with pytest.raises(InfrastructureError, match="stopped without a conclusion"):
        following.follow(store, stored.id, lambda: False, lambda event: None)


@pytest.mark.parametrize(
    ("status", "action", "how", "cure"),
    [
        ("failed", failure("the disk of box is full"), "(failed): the disk of box is full", "resume"),
        ("paused", Action("paused", "ann@lab"), "(paused by ann@lab)", "resume"),
        (
            "cancelled",
            Action("cancelled", "ann@lab", "v2 is out"),
            "(cancelled by ann@lab): v2 is out",
            "start",
        ),
        ("interrupted", Action("resumed", "ann@lab", "mended"), "(interrupted)", "resume"),
    ],
)
def test_who_follows_is_told_why_it_stopped(
    store: MemoryStore, stored: Stored, status: str, action: Action, how: str, cure: str
) -> None:
    store.set_status(stored.id, status, action=action)
    with pytest.raises(InfrastructureError) as error:
        following.follow(store, stored.id, lambda: False, lambda event: None)
    assert error.value.message == f"the bisection '{stored.id}' stopped without a conclusion {how}"
    assert f"perfbisect {cure}" in error.value.cure


def test_who_watches_is_told_the_place_once_for_each(
    store: MemoryStore, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_FOLLOW_SECONDS", 0.01)
    places = iter(["queued: second", "queued: second", "running: first"])
    events: list[Event] = []

    def running() -> bool:
        if len(events) == 2:
            store.set_status(stored.id, "done", CONCLUSION)
        return len(events) < 2

    following.follow(store, stored.id, running, events.append, lambda: next(places))
    assert [event.text for event in events] == ["queued: second", "running: first"]


def test_a_place_counts_those_on_the_same_testbeds(store: MemoryStore) -> None:
    def add(name: str, testbed: str, priority: int) -> None:
        request = fake.accepted(fake.a_lab(), (testbed,)).model_dump_json()
        store.create(Stored(name, 1.0, request, "queued", fake.a_lab().graph, priority=priority))

    for name, testbed, priority in (
        ("own", "a", 5),
        ("b", "a", 2),
        ("c", "a", 5),
        ("d", "a", 8),
        ("e", "x", 2),
    ):
        add(name, testbed, priority)
    found = following.place(store, "own", Holder("worker 'w'", QUEUE, "on this database"))
    assert found == (
        "queued: another perfbisect (worker 'w') executes what is queued on this database; "
        "1 more urgent one before it, 1 other of its priority on the same testbeds"
    )
    assert "nobody executes it yet" in following.place(store, "own", None)


# --- waiting for a turn -------------------------------------------------------------------------------------


class Waiting:
    """A bisection that waits while others hold the state folder."""

    def __init__(self, store: MemoryStore, stored: Stored, folder: Path) -> None:
        self.store, self.stored, self.folder = store, stored, folder
        self.told: list[str] = []
        self.stop = threading.Event()
        self.is_ours = True

    def wait(self, then: Callable[[], object] = lambda: None) -> Conclusion | None:
        """Wait for its turn; `then` happens when it was told its place for the first time."""

        def tell(event: Event) -> None:
            self.told.append(event.text)
            if len(self.told) == 1:
                then()

        return following.wait_for_turn(
            self.store, lambda: find_holder(self.folder), self.stored, tell, self.stop, self.is_ours
        )

    @property
    def status(self) -> str:
        return self.store.status(self.stored.id)


@pytest.fixture
def bench(store: MemoryStore, stored: Stored, tmp_path: Path) -> Waiting:
    return Waiting(store, stored, tmp_path)


def test_who_waits_is_queued_and_told_its_place(bench: Waiting) -> None:
    others = fake.accepted(fake.a_lab(seed=2)).model_dump_json()
    bench.store.create(Stored("older", 1.0, others, "running", bench.stored.graph))
    bench.store.create(Stored("ended", 1.0, others, "done", bench.stored.graph))
    with lock(bench.folder, "older"):
        seen: list[str] = []

        def end() -> None:
            seen.append(bench.status)
            bench.store.set_status(bench.stored.id, "done", CONCLUSION)

        assert bench.wait(end) == CONCLUSION
    assert seen == ["queued"]
    (place,) = bench.told
    assert place.startswith("queued: another perfbisect (process ")
    assert place.endswith(
        "runs the bisection 'older' in this state folder; 1 other of its priority on the same testbeds"
    )


def test_what_ends_while_its_place_is_looked_up_is_not_called_queued(bench: Waiting) -> None:
    def find() -> Holder | None:
        bench.store.set_status(bench.stored.id, "done", CONCLUSION)
        return Holder("process 7", "older")

    found = following.wait_for_turn(
        bench.store, find, bench.stored, lambda event: bench.told.append(event.text), bench.stop, True
    )
    assert (found, bench.told) == (CONCLUSION, [])


def test_who_watches_is_not_told_the_place_of_what_has_ended(store: MemoryStore, stored: Stored) -> None:
    store.set_status(stored.id, "done", CONCLUSION)
    alive, events = iter([True, False]), list[Event]()
    following.follow(
        store, stored.id, lambda: next(alive), events.append, lambda: following.place(store, stored.id, None)
    )
    assert events == []


def test_who_waits_takes_over_when_nobody_works_there_any_more(bench: Waiting) -> None:
    held = lock(bench.folder, "run of pipe-test on guest")
    held.__enter__()
    assert bench.wait(lambda: held.__exit__(None, None, None)) is None
    assert bench.status == "queued"
    assert bench.told[0].endswith("does a run of pipe-test on guest in this state folder")


def test_told_to_stop_who_waits_takes_its_bisection_out_of_the_queue(bench: Waiting) -> None:
    with lock(bench.folder, "older"), pytest.raises(Interrupted, match="no longer watched"):
        bench.wait(bench.stop.set)
    assert bench.status == "interrupted"


def test_who_only_watches_what_another_process_began_does_not_stop_it(bench: Waiting) -> None:
    bench.store.set_status(bench.stored.id, "running")
    with lock(bench.folder, bench.stored.id), pytest.raises(Interrupted):
        bench.wait(bench.stop.set)
    assert bench.status == "running"
    assert "runs it; watching" in bench.told[0]


def test_a_second_one_that_waits_for_the_same_does_not_take_it_out(bench: Waiting) -> None:
    bench.is_ours = False
    with lock(bench.folder, "older"), pytest.raises(Interrupted):
        bench.wait(bench.stop.set)
    assert bench.status == "queued"


@pytest.mark.parametrize("status", ["cancelled", "failed", "interrupted"])
def test_an_end_without_a_conclusion_is_told(bench: Waiting, status: str) -> None:
    refused = pytest.raises(InfrastructureError, match=f"stopped without a conclusion \\({status}\\)")
    with lock(bench.folder, "older"), refused:
        bench.wait(lambda: bench.store.set_status(bench.stored.id, status))


def test_a_worker_that_was_fenced_executes_nothing(tmp_path: Path) -> None:
    coordinator = MemoryCoordinator(lambda: 1e9)
    coordinator.register("w1-1", "w1")
    holder = following.Executors(tmp_path, coordinator).find("b")
    assert holder is not None and holder.who == "worker 'w1'"
    coordinator.fence_silent(0.0)
    found = following.Executors(tmp_path, coordinator)
    assert (found.workers, found.find("b")) == ((), None)
