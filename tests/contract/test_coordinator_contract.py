"""What every Coordinator must do, and every Store with the leases that it gives."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bisector.adapters.store import memory_coordinator, sql_coordinator
from bisector.adapters.store.database import Database
from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.adapters.store.memory_store import MemoryStore
from bisector.adapters.store.open_database import open_server, open_state_file
from bisector.adapters.store.sql_coordinator import SqlCoordinator
from bisector.adapters.store.sql_store import SqlStore
from bisector.errors import Fenced, RequestError
from bisector.model.decisions import Conclusion, Ending, Measure
from bisector.model.records import Built
from bisector.model.stored_bisection import Stored
from bisector.simulation.histories import linear
from bisector.store_ports import Coordinator, Store
from tests.support.waiting import until

RECORD = Built(1, True, 1.0)


@dataclass
class Lab:
    """coordinator, store: of one database. another: opens them as another process would."""

    coordinator: Coordinator
    store: Store
    another: Callable[[], Coordinator]


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Lab:
    if request.param == "memory":
        memory = MemoryCoordinator(time.time)
        return Lab(memory, MemoryStore(memory), lambda: memory)
    url = request.getfixturevalue("database_url") if request.param == "postgresql" else None

    def open_again() -> Database:
        return open_state_file(tmp_path / "state" / "x.sqlite") if url is None else open_server(url)

    database = open_again()
    return Lab(SqlCoordinator(database), SqlStore(database), lambda: SqlCoordinator(open_again()))


def test_executors_are_registered_once_and_heard_of(lab: Lab) -> None:
    before = lab.coordinator.now()
    lab.coordinator.register("b-1", "b")
    lab.coordinator.register("a-1", "a")
    first, second = lab.another().executors()
    assert (first.id, first.name, second.id) == ("a-1", "a", "b-1")
    assert before <= second.seen <= lab.coordinator.now()
    assert not first.fenced and first.silent < 10
    lab.coordinator.heartbeat("b-1")
    assert lab.coordinator.executors()[1].seen >= second.seen
    lab.coordinator.unregister("a-1")
    lab.coordinator.unregister("nobody")
    assert [e.id for e in lab.coordinator.executors()] == ["b-1"]


def test_executors_that_died_are_forgotten_when_they_are_old(lab: Lab) -> None:
    lab.coordinator.register("dead", "w")
    lab.coordinator.fence_silent(0.0)
    lab.coordinator.register("alive", "w")
    assert lab.coordinator.forget_unused(1000.0) == 0
    until(lambda: lab.coordinator.forget_unused(0.001) > 0, 10)
    assert [e.id for e in lab.another().executors()] == ["alive"]
    lease = lab.coordinator.acquire("guest", "alive")
    assert lease is not None
    lab.coordinator.forget_unused(-1.0)
    lab.coordinator.check(lease)


def test_a_testbed_belongs_to_its_first_host_until_it_is_moved(lab: Lab) -> None:
    assert lab.coordinator.testbed_hosts() == {}
    assert lab.coordinator.bind_testbed("guest", "a", move=False) == "a"
    assert lab.another().bind_testbed("guest", "b", move=False) == "a"
    assert lab.another().bind_testbed("guest", "b", move=True) == "b"
    assert lab.coordinator.bind_testbed("guest", "a", move=False) == "b"
    assert lab.coordinator.testbed_hosts() == {"guest": "b"}


def test_a_name_is_for_one_living_executor(lab: Lab) -> None:
    lab.coordinator.register("one", "w")
    with pytest.raises(RequestError, match="a worker 'w' runs already: it was heard of 0 s ago") as error:
        lab.another().register("two", "w")
    assert error.value.cure
    lease = lab.coordinator.acquire("guest", "one")
    assert lease is not None
    lab.coordinator.unregister("one")
    lab.another().register("two", "w")
    with pytest.raises(Fenced):
        lab.coordinator.heartbeat("one")
    with pytest.raises(Fenced):
        lab.coordinator.check(lease)
    assert lab.coordinator.acquire("guest", "two") is not None


def test_a_name_passes_to_the_next_executor_of_the_same_place(lab: Lab) -> None:
    lab.coordinator.register("w@here-1", "w")
    with pytest.raises(RequestError, match="a worker 'w' runs already"):
        lab.another().register("w@there-1", "w")
    lab.another().register("w@here-2", "w")
    assert [(e.id, e.fenced) for e in lab.coordinator.executors()] == [
        ("w@here-1", True),
        ("w@here-2", False),
    ]


def test_who_waits_for_a_lease_has_it_before_its_holder_has_it_again(lab: Lab) -> None:
    for name in ("one", "two", "three"):
        lab.coordinator.register(name, name)
    assert lab.coordinator.acquire("guest", "one") is not None
    assert lab.coordinator.acquire("other", "one") is not None
    assert lab.coordinator.wanted("one") == set()
    assert lab.another().acquire("guest", "two") is None
    assert lab.coordinator.acquire("guest", "three") is None
    assert lab.coordinator.wanted("one") == {"guest"}
    assert lab.coordinator.wanted("two") == set()
    held = lab.coordinator.acquire("guest", "one")
    assert held is not None
    assert lab.coordinator.wanted("one") == {"guest"}, "two waits still"
    lab.coordinator.release(held)
    assert lab.coordinator.acquire("guest", "one") is None, "two has waited"
    assert lab.coordinator.acquire("guest", "three") is None
    assert lab.coordinator.acquire("guest", "two") is not None
    assert lab.coordinator.wanted("two") == set(), "nobody has asked since"


def test_who_asks_no_more_waits_no_longer(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def wait_for(seconds: float) -> None:
        for module in (sql_coordinator, memory_coordinator):
            monkeypatch.setattr(module, "WANTED_TTL_SECONDS", seconds)

    wait_for(0.2)
    for name in ("one", "two", "three"):
        lab.coordinator.register(name, name)
    held = lab.coordinator.acquire("guest", "one")
    assert held is not None and lab.coordinator.acquire("guest", "two") is None
    time.sleep(0.3)
    assert lab.coordinator.wanted("one") == set()
    lab.coordinator.release(held)
    held = lab.coordinator.acquire("guest", "one")
    assert held is not None and lab.coordinator.acquire("guest", "two") is None
    time.sleep(0.3)
    assert lab.coordinator.acquire("guest", "three") is None
    wait_for(100.0)
    lab.coordinator.release(held)
    assert lab.coordinator.acquire("guest", "one") is None
    assert lab.coordinator.acquire("guest", "three") is not None, "it waits in place of two"


@pytest.mark.parametrize("dies", [False, True], ids=["ended", "fenced"])
def test_who_waited_and_has_ended_waits_no_longer(lab: Lab, dies: bool) -> None:
    """A command that was ended by Ctrl-C kept a testbed idle for ten seconds."""
    for executor in ("one@here-1", "two@here-1", "three@here-1"):
        lab.coordinator.register(executor, executor.partition("@")[0])
    lease = lab.coordinator.acquire("guest", "one@here-1")
    assert lease is not None and lab.coordinator.acquire("guest", "two@here-1") is None
    if dies:
        lab.coordinator.register("two@here-2", "two")
    else:
        lab.coordinator.unregister("two@here-1")
    assert lab.coordinator.wanted("one@here-1") == set()
    lab.coordinator.release(lease)
    assert lab.coordinator.acquire("guest", "three@here-1") is not None


def test_the_trials_of_an_executor_end_with_it(lab: Lab) -> None:
    lab.store.create(Stored("one", 1.0, "{}", "new", linear(3)))
    trial = Measure(1, 1, "verify", "why")
    for name in ("e", "f"):
        lab.coordinator.register(name, name)
        lease = lab.coordinator.acquire(f"bisection of {name}", name)
        assert lease is not None
        assert lab.store.fenced(lease).begin_trial("one", name, trial, seen=9) is not None
    assert list(lab.store.trials("one")[1]) == ["e", "f"]
    assert lab.store.trials_of_others("e") == [("one", "f")]
    lab.coordinator.unregister("e")
    assert list(lab.store.trials("one")[1]) == ["f"]
    assert lab.store.trials_of_others("f") == []
    time.sleep(0.1)
    lab.coordinator.fence_silent(0.1)
    assert lab.store.trials("one")[1] == {}


def test_who_is_silent_is_fenced_and_loses_its_leases(lab: Lab) -> None:
    lab.coordinator.register("one", "w1")
    lab.coordinator.register("two", "w2")
    lease = lab.coordinator.acquire("guest", "one")
    assert lease is not None
    another = lab.another()
    assert another.fence_silent(60) == []
    time.sleep(3.0)  # so long may a step of the database take
    lab.coordinator.heartbeat("two")
    assert [e.id for e in another.fence_silent(3.0)] == ["one"]
    assert {e.id: e.fenced for e in lab.coordinator.executors()}["one"]
    acts: list[Callable[[], object]] = [
        lambda: lab.coordinator.heartbeat("one"),
        lambda: lab.coordinator.acquire("guest", "one"),
        lambda: lab.coordinator.check(lease),
    ]
    for act in acts:
        with pytest.raises(Fenced) as error:
            act()
        assert error.value.cure and error.value.exit_code == 3
    assert "guest" not in [held.resource for held in lab.coordinator.leases()]


def test_the_epoch_grows_with_every_lease(lab: Lab) -> None:
    lab.coordinator.register("one", "w1")
    lab.coordinator.register("two", "w2")
    first = lab.coordinator.acquire("guest", "one")
    assert first is not None and first.epoch == 1
    assert lab.another().acquire("guest", "two") is None
    again = lab.coordinator.acquire("guest", "one")
    assert again is not None and again.epoch == 2
    lab.coordinator.release(first)  # an old one: nothing happens
    assert lab.coordinator.leases() == [again]
    with pytest.raises(Fenced):
        lab.coordinator.check(first)
    lab.coordinator.check(again)
    lab.coordinator.release(again)
    assert lab.coordinator.leases() == []
    third = lab.another().acquire("guest", "two")
    assert third is not None and third.epoch == 3
    lab.coordinator.unregister("two")
    fourth = lab.coordinator.acquire("guest", "one")
    assert fourth is not None and fourth.epoch == 4


def test_an_executor_that_nobody_registered_gets_nothing(lab: Lab) -> None:
    with pytest.raises(Fenced):
        lab.coordinator.acquire("guest", "nobody")
    with pytest.raises(Fenced):
        lab.coordinator.heartbeat("nobody")


def test_of_several_that_ask_for_a_resource_one_gets_it(lab: Lab) -> None:
    for number in range(6):
        lab.coordinator.register(f"e{number}", f"w{number}")
    got = []

    def ask(number: int) -> None:
        lease = lab.another().acquire("guest", f"e{number}")
        if lease is not None:
            got.append(lease)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 1 and lab.coordinator.leases() == got


def test_a_store_writes_for_the_holder_of_a_lease_only(lab: Lab) -> None:
    lab.store.create(Stored("one", 1.0, "{}", "new", linear(3)))
    lab.coordinator.register("e", "w")
    lease = lab.coordinator.acquire("guest", "e")
    assert lease is not None
    mine = lab.store.fenced(lease)
    mine.append("one", RECORD)
    mine.decide("one", Measure(1, 1, "verify", "why"))
    mine.set_status("one", "running")
    newer = lab.coordinator.acquire("guest", "e")
    assert newer is not None
    writes: list[Callable[[], object]] = [
        lambda: mine.append("one", RECORD),
        lambda: mine.decide("one", Measure(1, 1, "verify", "why")),
        lambda: mine.set_status("one", "done"),
        lambda: mine.begin_trial("one", "t", Measure(1, 1, "verify", "why"), seen=9),
        lambda: mine.end_trial("one", "t"),
        lambda: mine.conclude("one", Conclusion(Ending.INCONCLUSIVE, "over"), seen=2),
        lambda: mine.number_boot("one", 1),
    ]
    for write in writes:
        with pytest.raises(Fenced, match=r"'guest' is no longer leased to 'e' \(epoch 1\)"):
            write()
    assert mine.status("one") == "running"
    assert len(mine.records("one")) == len(mine.decisions("one")) == 1
    lab.store.fenced(newer).append("one", RECORD)
    lab.coordinator.unregister("e")
    with pytest.raises(Fenced):
        lab.store.fenced(newer).append("one", RECORD)
    lab.store.append("one", RECORD)
    assert [number for number, _ in lab.store.records("one")] == [1, 3, 4]


def test_a_testbed_has_the_state_that_was_said_last(lab: Lab) -> None:
    lab.coordinator.set_testbed("b", "suspect", "reference run 5% slow", "health check")
    lab.coordinator.set_testbed("a", "good", "", "eve")
    before = lab.coordinator.now()
    lab.coordinator.set_testbed("b", "retired", "burnt", "eve")
    a, b = lab.another().testbeds()
    assert (a.name, a.state) == ("a", "good")
    assert (b.name, b.state, b.reason, b.by) == ("b", "retired", "burnt", "eve")
    assert before <= b.since <= lab.coordinator.now()


def test_reservations_of_a_testbed_do_not_overlap(lab: Lab) -> None:
    now = lab.coordinator.now()
    mine = lab.coordinator.reserve("a", "eve", now + 100)
    assert now <= mine.start <= lab.coordinator.now()
    with pytest.raises(RequestError, match="'a' is reserved for eve in that time"):
        lab.another().reserve("a", "bob", now + 50)
    later = lab.another().reserve("a", "bob", now + 300, now + 200)
    with pytest.raises(RequestError) as refused:
        lab.coordinator.reserve("a", "eve", now + 250, now + 100)
    times = " to ".join(f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d %H:%M}" for t in (later.start, later.end))
    assert f"reserved for bob in that time: {times} UTC" in refused.value.message
    other = lab.coordinator.reserve("b", "bob", now + 50, now + 10)
    assert lab.another().reservations() == [mine, other, later]
    assert lab.coordinator.unreserve("a", "eve") == 1
    assert lab.coordinator.unreserve("a", "eve") == 0
    assert lab.coordinator.reservations() == [other, later]
    assert lab.coordinator.leases() == []


def test_reservations_of_one_person_that_meet_are_one(lab: Lab) -> None:
    """Lists told the end of the first one, the queue that of the last one."""
    now = lab.coordinator.now()
    mine = lab.coordinator.reserve("a", "eve", now + 200)
    tomorrow = lab.coordinator.reserve("a", "eve", now + 900, now + 800)
    assert lab.coordinator.reserve("a", "eve", now + 100) == mine, "it was longer already"
    lab.coordinator.reserve("b", "eve", now + 300)
    longer = lab.coordinator.reserve("a", "eve", now + 400, now + 200)
    assert (longer.start, longer.end) == (mine.start, now + 400)
    assert [one for one in lab.another().reservations() if one.testbed == "a"] == [longer, tomorrow]
    assert lab.coordinator.unreserve("a", "eve") == 2


def test_a_reservation_ends_by_itself(lab: Lab) -> None:
    now = lab.coordinator.now()
    lab.coordinator.reserve("a", "eve", now + 0.05)
    time.sleep(0.1)
    assert lab.coordinator.reservations() == []
    assert lab.coordinator.unreserve("a", "eve") == 0, "it has ended already"
    lab.coordinator.reserve("a", "bob", now + 100)
    for start, end in ((None, now - 1), (now + 20, now + 10)):
        with pytest.raises(RequestError, match="end before it begins"):
            lab.coordinator.reserve("a", "bob", end, start)


def test_machine_time_is_added_up_by_owner_and_hour(lab: Lab) -> None:
    hour = int(lab.coordinator.now() // 3600)
    lab.coordinator.add_machine_time("nightly", 60.0)
    lab.another().add_machine_time("nightly", 1.5)
    lab.coordinator.add_machine_time("ada@lab", 7.0)
    found = lab.another().machine_time("nightly")
    assert sum(found.values()) == 61.5
    assert set(found) <= {hour, hour + 1}
    assert lab.coordinator.machine_time("nobody") == {}
