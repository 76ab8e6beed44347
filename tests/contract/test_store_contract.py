"""What every Store must do, asked of the real one and of the fake."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.store.memory_store import MemoryStore
from bisector.adapters.store.open_database import open_server, open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.errors import RequestError
from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Conclusion, Ending, Finding, Interval, Measure
from bisector.model.records import Booted, Built, Discarded, Left, Marked, Ran, Record, RunFailed
from bisector.model.stored_bisection import ENDED, Action, Stored
from bisector.store_ports import Store

RECORDS: tuple[Record, ...] = (
    Built(1, True, 60.5, "abc", 0, False),
    Built(2, False, 3.0, failure="does not compile: ü"),
    Booted("boot-001", 1, "guest", True, 7.25, 1e9),
    Booted("boot-002", 3, "guest", False, 0.0, 1e9, 2, "certify", "panic"),
    Ran("boot-001", 0, {"real": 0.1 + 0.2, "user": 1e-300}, 1.0, 1e9 + 0.125, warmup=True),
    Ran("boot-001", 1, {"real": 1.5}, 1.0, 1e9, ("warn", "clock")),
    RunFailed("boot-001", "no metric"),
    Left("boot-001", lost=True),
    Left("boot-002", failure="the workload did not end within 150 s"),
    Marked(4, "bad", "seen by eye"),
    Discarded("testbed", "guest", "a backup ran"),
)
GRAPH = CommitGraph(
    shas=("a" * 40, "b" * 40, "c" * 40, "d" * 40),
    parents=((), (0,), (0,), (1, 2)),
    candidate=(False, True, True, True),
    good=0,
    bad=3,
    merge_bases=(0,),
    untestable={2: "no Linux"},
    weights={1: 0.5},
)
CONCLUSION = Conclusion(
    Ending.CULPRIT,
    "found",
    (Finding((1,), Interval(0.1, 0.2, 0.3), 0.99, (0,), True, "note"),),
    Interval(0.1, 0.2, 0.3),
    None,
    0.99,
    ("careful",),
    ((1, Interval(1.0, 2.0, 3.0)),),
)


@pytest.fixture(params=["sqlite", "postgresql", "memory"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Opens the store; a second call opens the same one again where it outlives its object."""
    if request.param == "sqlite":
        return lambda: SqlStore(open_state_file(tmp_path / "state" / "x.sqlite"))
    if request.param == "postgresql":
        url = request.getfixturevalue("database_url")
        return lambda: SqlStore(open_server(url))
    memory = MemoryStore()
    return lambda: memory


def stored(name: str = "one", created: float = 1.0) -> Stored:
    return Stored(name, created, '{"repo": "/x"}', "new", GRAPH)


def test_what_is_created_can_be_loaded_without_loss(make: Callable[[], Store]) -> None:
    make().create(stored())
    assert make().load("one") == stored()
    assert make().status("one") == "new"


def test_an_id_is_used_once(make: Callable[[], Store]) -> None:
    store = make()
    store.create(stored())
    with pytest.raises(RequestError, match="exists already"):
        store.create(stored())


def test_what_happened_elsewhere_comes_with_a_bisection_in_its_order(make: Callable[[], Store]) -> None:
    decided = Measure(1, 2, "verify", "why")
    make().create(stored(), [decided, *RECORDS, CONCLUSION])
    numbers, records = zip(*make().records("one"), strict=True)
    assert records == RECORDS
    (first, decision), (last, conclusion) = make().decisions("one")
    assert (decision, conclusion) == (decided, CONCLUSION)
    assert first < min(numbers) and max(numbers) < last


def test_an_unknown_id_is_refused_with_the_nearest(make: Callable[[], Store]) -> None:
    store = make()
    store.create(stored("pipe-test-1234"))
    for ask in (store.load, store.status):
        with pytest.raises(RequestError, match="no bisection 'pipe-tset-1234'"):
            ask("pipe-tset-1234")
    with pytest.raises(RequestError, match="did you mean 'pipe-test-1234'"):
        store.load("pipe-tset-1234")
    with pytest.raises(RequestError, match="no bisection"):
        store.append("other", RECORDS[0])
    with pytest.raises(RequestError, match="no bisection"):
        store.set_status("other", "done")


def test_a_status_is_changed_from_one_that_is_expected_alone(make: Callable[[], Store]) -> None:
    store = make()
    store.create(replace(stored(), status="queued"))
    assert store.set_status("one", "running", expected=("queued", "running"))
    assert store.set_status("one", "cancelled")
    assert not store.set_status("one", "done", CONCLUSION, expected=("queued", "running"))
    assert (make().status("one"), make().load("one").conclusion) == ("cancelled", None)
    with pytest.raises(RequestError, match="no bisection"):
        store.set_status("other", "done", expected=("running",))


def test_list_is_newest_first(make: Callable[[], Store]) -> None:
    store = make()
    for name, created in (("a", 2.0), ("b", 3.0), ("c", 1.0)):
        store.create(stored(name, created))
    assert [s.id for s in store.list()] == ["b", "a", "c"]


def test_list_of_what_changed_since(make: Callable[[], Store]) -> None:
    store = make()
    store.create(stored("a", 1.0))
    changed = store.list()[0].changed
    assert [s.id for s in store.list(since=changed)] == ["a"]
    assert store.list(since=changed + 1.0) == []


def test_list_names_the_first_few_and_those_of_one_beginning(make: Callable[[], Store]) -> None:
    store = make()
    for number, name in enumerate(("a%-1", "A%-2", "ab-3", "a%-4")):
        store.create(stored(name, float(number)))
    assert [s.id for s in store.list(limit=2)] == ["a%-4", "ab-3"]
    assert [s.id for s in store.list(beginning="a%")] == ["a%-4", "a%-1"]
    assert store.list(limit=0) == []


def test_list_tells_what_was_asked_for_and_what_was_found(make: Callable[[], Store]) -> None:
    store = make()
    before = time.time()
    store.create(replace(stored(), request='{"request": {"workload": "/w/pipe", "good": "v1", "bad": "v2"}}'))
    (new,) = store.list()
    assert (new.created, new.status, new.ending, new.culprits) == (1.0, "new", None, ())
    assert (new.workload, new.good, new.bad) == ("/w/pipe", "v1", "v2")
    store.set_status("one", "done", CONCLUSION)
    (done,) = make().list()
    assert (done.status, done.ending, done.culprits) == ("done", Ending.CULPRIT, ("b" * 40,))
    assert before <= new.changed <= done.changed <= time.time()
    store.set_status("one", "removing")
    (still,) = store.list()
    assert (still.status, still.ending, still.culprits) == ("removing", Ending.CULPRIT, ("b" * 40,))


def test_what_is_removed_is_gone_and_the_others_stay(make: Callable[[], Store]) -> None:
    store = make()
    for name in ("one", "two"):  # of the same graph
        store.create(stored(name))
        store.append(name, RECORDS[0])
        store.decide(name, CONCLUSION)
    store.remove("one")
    assert [s.id for s in make().list()] == ["two"]
    assert make().load("two").graph == GRAPH
    assert len(store.records("two")) == len(store.decisions("two")) == 1
    for ask in (store.load, store.status, store.remove):
        with pytest.raises(RequestError, match="no bisection 'one'"):
            ask("one")
    store.create(stored("one"))
    assert not store.records("one")
    store.give_back()
    assert store.load("one") == stored("one")


def test_every_kind_of_record_comes_back_in_order_and_without_loss(make: Callable[[], Store]) -> None:
    store = make()
    store.create(stored())
    numbers = [store.append("one", r) for r in RECORDS]
    assert numbers == sorted(set(numbers))
    back = make().records("one")
    assert tuple(record for _, record in back) == RECORDS
    assert [number for number, _ in back] == numbers
    assert [r for _, r in store.records("one", after=numbers[6])] == list(RECORDS[7:])


def test_seconds_are_added_up_by_kind(make: Callable[[], Store]) -> None:
    store = make()
    store.create(stored("one"), RECORDS)
    spent = store.seconds_spent("one")
    assert spent == {"Built": 63.5, "Booted": 7.25, "Ran": 2.0}


def test_bisections_do_not_see_each_others_records(make: Callable[[], Store]) -> None:
    store = make()
    store.create(stored("one"))
    store.create(stored("two"))
    store.append("one", RECORDS[0])
    assert not store.records("two")


def test_decisions_share_the_numbers_of_records(make: Callable[[], Store]) -> None:
    store = make()
    store.create(stored())
    measure = Measure(1, 3, "search", "splits the rest", None, "guest", 1)
    first = store.append("one", RECORDS[0])
    second = store.decide("one", measure)
    third = store.append("one", RECORDS[1])
    fourth = store.decide("one", CONCLUSION)
    assert first < second < third < fourth
    assert list(make().decisions("one")) == [(second, measure), (fourth, CONCLUSION)]
    assert list(make().decisions("one", after=second)) == [(fourth, CONCLUSION)]
    assert len(store.records("one")) == 2


def test_the_conclusion_stays_when_only_the_status_changes(make: Callable[[], Store]) -> None:
    store = make()
    store.create(stored())
    store.set_status("one", "done", CONCLUSION)
    store.set_status("one", "running")
    assert make().load("one").conclusion == CONCLUSION
    assert make().status("one") == "running"


def test_several_threads_may_append(make: Callable[[], Store]) -> None:
    store = make()
    store.create(stored())

    def work(k: int) -> None:
        for i in range(20):
            store.append("one", Ran(f"boot-{k}", i, {"real": 1.0}, 1.0, 1.0))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = [r for _, r in store.records("one")]
    assert len(records) == 80
    for k in range(4):
        assert [r.index for r in records if isinstance(r, Ran) and r.boot == f"boot-{k}"] == list(range(20))


def test_priority_owner_and_what_people_did_are_kept(make: Callable[[], Store]) -> None:
    store = make()
    store.create(replace(stored(), priority=2, owner="ada@lab"))
    assert (make().load("one").priority, make().load("one").owner) == (2, "ada@lab")
    before = time.time()
    store.set_status("one", "paused", action=Action("paused", "bob@lab", "the machine is moved"))
    store.set_status("one", "queued")
    store.set_status("one", "cancelled", expected=("running",), action=Action("cancelled", "eve@lab"))
    for action in (make().load("one").action, make().list()[0].action):
        assert action is not None
        assert (action.what, action.by, action.why) == ("paused", "bob@lab", "the machine is moved")
        assert before <= action.at <= time.time()
    store.set_priority("one", 8, Action("priority 8", "bob@lab"))
    (one,) = make().list()
    assert (one.priority, one.owner, one.action and one.action.what) == (8, "ada@lab", "priority 8")
    with pytest.raises(RequestError, match="no bisection"):
        store.set_priority("other", 1, Action("", ""))


def test_lists_tell_testbeds_and_progress_without_records(make: Callable[[], Store]) -> None:
    store = make()
    elsewhere: list[Record] = [
        *(Booted("b0", 0, "a", True, 1.0, 1.0), Left("b0")),
        *(Booted("bad", 0, "b c", True, 1.0, 1.0), RunFailed("bad", "no metric")),
    ]
    store.create(replace(stored(), request='{"testbeds": ["a", "b c"]}'), elsewhere)
    for record in (
        Booted("b1", 0, "b c", True, 1.0, 1.0),
        Booted("b2", 0, "a", False, 1.0, 1.0),
        Booted("b3", 0, "a", True, 1.0, 1.0),
        Left("b1"),
    ):
        store.append("one", record)
    before = time.time()
    store.decide("one", Measure(0, 1, "search", "why", left=70.0))
    (one,) = make().list()
    assert one.testbeds == ("a", "b c")
    assert (one.progress.boots, one.progress.live, one.progress.left) == (4, ("a",), 70.0)
    store.decide("one", Measure(0, 1, "verify", "why", left=2.0))
    assert store.list()[0].progress.left is None, "only the comparison of the ends is over then"
    assert one.progress.measured == ("a", "b c")
    assert one.progress.decided is not None and before <= one.progress.decided <= time.time()
    store.decide("one", CONCLUSION)
    assert store.list()[0].progress.left is None


def test_lists_tell_that_a_kernel_is_built_until_the_next_decision(make: Callable[[], Store]) -> None:
    store = make()
    for name in ("one", "two"):
        store.create(stored(name))

    def building() -> set[str]:
        return {one.id for one in make().list() if one.progress.building}

    assert building() == set()
    for name in ("one", "two", "nobody"):
        store.note_building(name, True)
    assert building() == {"one", "two"}
    store.note_building("one", False)
    assert building() == {"two"}
    store.append("two", RECORDS[0])
    assert building() == {"two"}
    store.decide("two", Measure(0, 1, "search", "why"))
    assert building() == set()


def test_list_finds_all_of_several_statuses(make: Callable[[], Store]) -> None:
    store = make()
    for number, status in enumerate(("queued", "running", "done", "running")):
        store.create(replace(stored(str(number), float(number)), status=status))
    assert [one.id for one in store.list(statuses=("queued", "running"))] == ["3", "1", "0"]
    assert [one.id for one in store.list(statuses=("running",), limit=1, beginning="1")] == ["1"]


def test_a_trial_is_under_way_until_it_ends_and_is_begun_on_what_was_seen(make: Callable[[], Store]) -> None:
    store = make()
    store.create(stored())
    trial, other = Measure(1, 2, "search", "why", left=0.1), Measure(2, 1, "verify", "why", "boot-001")
    assert store.trials("one") == (0, {})
    assert store.begin_trial("one", "a", trial, seen=0) == 1
    assert make().trials("one") == (1, {"a": trial})
    assert store.begin_trial("one", "b", other, seen=0) is None, "decided on without knowing of a's"
    store.append("one", RECORDS[0])
    assert store.begin_trial("one", "b", other, seen=1) == 3, "a record since then does not matter"
    assert list(make().trials("one")[1].items()) == [("a", trial), ("b", other)]
    assert store.begin_trial("one", "a", other, seen=3) == 4
    store.end_trial("one", "b")
    store.end_trial("one", "nowhere")
    assert store.trials("one") == (4, {"a": other})
    assert [decision for _, decision in store.decisions("one")] == [trial, other, other]
    store.create(stored("two", 2.0))
    assert store.trials("two") == (0, {})
    store.remove("one")
    store.create(stored())
    assert store.trials("one") == (0, {})
    with pytest.raises(RequestError, match="no bisection 'none'"):
        store.begin_trial("none", "a", trial, seen=0)
    with pytest.raises(RequestError, match="no bisection 'none'"):
        store.number_boot("none", 1)


def test_a_search_ends_once_nothing_is_under_way_and_nothing_unseen(make: Callable[[], Store]) -> None:
    store = make()
    store.create(stored())
    store.begin_trial("one", "a", Measure(1, 1, "search", "why"), seen=0)
    assert store.conclude("one", CONCLUSION, seen=1) is None, "a trial is under way"
    store.append("one", RECORDS[0])
    store.end_trial("one", "a")
    assert store.conclude("one", CONCLUSION, seen=1) is None, "a record that was not seen"
    assert store.conclude("one", CONCLUSION, seen=2) == 3
    assert make().decisions("one", after=1) == [(3, CONCLUSION)]


def test_what_people_say_is_added_until_the_search_has_its_end(make: Callable[[], Store]) -> None:
    store, said = make(), Discarded("testbed", "guest", "a backup ran")
    store.create(stored())
    assert store.append_while_open("one", said) == 1
    assert store.conclude("one", CONCLUSION, seen=1) == 2
    assert make().append_while_open("one", said) is None, "only its status is not written yet"
    store.decide("one", Measure(1, 1, "search", "a testbed came back"))
    assert store.append_while_open("one", said) == 4
    assert store.records("one") == [(1, said), (4, said)]
    with pytest.raises(RequestError, match="no bisection 'none'"):
        store.append_while_open("none", said)


@pytest.mark.parametrize("status", ENDED)
def test_what_people_say_is_not_added_to_what_is_over(make: Callable[[], Store], status: str) -> None:
    store = make()
    store.create(replace(stored(), status=status))
    assert store.append_while_open("one", RECORDS[-1]) is None
    assert list(store.records("one")) == []


def test_numbers_of_boots_are_given_once(make: Callable[[], Store]) -> None:
    store = make()
    store.create(stored())
    assert [store.number_boot("one", 1), make().number_boot("one", 1), store.number_boot("one", 7)] == [
        1,
        2,
        7,
    ]
    assert store.number_boot("one", 2) == 8
