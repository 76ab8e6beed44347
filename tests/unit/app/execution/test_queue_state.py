"""What the queue says of each bisection: where it measures, and what it waits for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.store.sql_coordinator import SqlCoordinator
from bisector.app.execution.queue_state import read_queue
from bisector.app.wiring import Wiring
from bisector.engine.membership import START, Membership
from bisector.engine.state_lock import QUEUE, lock
from bisector.model.decisions import Measure
from bisector.model.records import Booted, Left
from bisector.model.stored_bisection import Stored
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.settings import Settings
from tests.support import fake_bisection as fake


@pytest.fixture
def wiring(tmp_path: Path) -> Wiring:
    return Wiring(Settings(state_dir=tmp_path / "state", cache_dir=tmp_path))


def add(wiring: Wiring, name: str, created: float, status: str, *testbeds: str, **more: Any) -> None:
    lab = fake.a_lab()
    request = fake.accepted(lab, testbeds).model_dump_json()
    wiring.store.create(Stored(name, created, request, status, lab.graph, **more))


def booted(boot: str, testbed: str, *, ok: bool = True) -> Booted:
    return Booted(boot, 0, testbed, ok, 10.0, 1.0)


def test_without_a_state_folder_nothing_is_queued(wiring: Wiring) -> None:
    found = read_queue(wiring)
    assert (list(found.entries), found.executor) == ([], None)
    assert not wiring.settings.state_dir.exists()


def test_who_measures_where_and_who_waits_for_whom(wiring: Wiring) -> None:
    add(wiring, "first", 1.0, "running", "a", "b")
    add(wiring, "second", 2.0, "queued", "a", "b")
    add(wiring, "third", 3.0, "queued", "c")
    add(wiring, "over", 4.0, "done", "a")
    for record in (booted("b1", "b"), Left("b1"), booted("b2", "a"), booted("b3", "b", ok=False)):
        wiring.store.append("first", record)
    wiring.store.decide("first", Measure(0, 1, "search", "why", left=70.0))
    with lock(wiring.settings.state_dir, QUEUE):
        found = read_queue(wiring)
    first, second, third = found.entries
    assert [entry.summary.id for entry in found.entries] == ["first", "second", "third"], "the oldest first"
    assert (first.measures_on, first.waits_for, first.summary.progress.boots) == (("a",), (), 2)
    assert first.left is not None and 50.0 < first.left <= 70.0
    assert first.begins == found.now and first.ends is not None, "it has half of two testbeds"
    assert found.now + 50 < first.ends < found.now + 80
    assert (second.measures_on, second.waits_for, second.left) == ((), (("a", "first"),), None)
    assert (third.summary.testbeds, third.waits_for) == (("c",), ())
    assert found.executor is not None and found.executor.endswith(
        "executes what is queued in this state folder"
    )


def test_a_testbed_whose_boot_is_awaited_is_had(wiring: Wiring) -> None:
    """Real machines boot for minutes: who has drained one must see that it is not free yet."""
    add(wiring, "first", 1.0, "running", "a", "b")
    add(wiring, "second", 2.0, "queued", "a")
    for testbed in ("b", "a"):
        wiring.store.begin_trial("first", testbed, Measure(0, 1, "search", "why"), seen=99)
    wiring.store.append("first", booted("b1", "b"))
    with lock(wiring.settings.state_dir, QUEUE):
        first, second = read_queue(wiring).entries
    assert (first.measures_on, first.prepares_on) == (("b",), ("a",))
    assert second.waits_for == (("a", "first"),)
    (killed, _) = read_queue(wiring).entries
    assert (killed.measures_on, killed.prepares_on) == ((), ()), "nobody executes it"


def test_what_a_killed_executor_left_is_told(wiring: Wiring) -> None:
    add(wiring, "first", 1.0, "running", "a")
    wiring.store.append("first", booted("b1", "a"))
    (entry,) = read_queue(wiring).entries
    assert (entry.status, entry.measures_on) == ("interrupted", ())


def test_a_run_of_a_workload_executes_no_queue(wiring: Wiring) -> None:
    add(wiring, "first", 1.0, "queued", "a")
    with lock(wiring.settings.state_dir, "run of pipe-test on guest"):
        assert read_queue(wiring).executor is None


def test_the_most_urgent_comes_first_and_who_waits_is_told_why(tmp_path: Path) -> None:
    caps = {"nightly": 2.0}
    wiring = Wiring(Settings(state_dir=tmp_path / "state", cache_dir=tmp_path, caps=caps))
    add(wiring, "usual", 1.0, "queued", "a")
    add(wiring, "urgent", 2.0, "queued", "b", priority=2, owner="ada@lab")
    add(wiring, "capped", 3.0, "queued", "a", priority=2, owner="nightly")
    wiring.coordinator.add_machine_time("nightly", 7200.0)
    wiring.coordinator.set_testbed("b", "maintenance", "new memory", "bob@lab")
    with lock(wiring.settings.state_dir, QUEUE):
        found = read_queue(wiring)
    urgent, capped, usual = found.entries
    assert [entry.summary.id for entry in found.entries] == ["urgent", "capped", "usual"]
    assert (dict(urgent.unusable), urgent.begins) == ({"b": "maintenance: new memory (bob@lab)"}, None)
    assert capped.capped.startswith("waits until 2") and "nightly has had its machine hours" in capped.capped
    assert capped.begins is not None and capped.begins > found.now
    assert (usual.capped, dict(usual.unusable), usual.begins) == ("", {}, found.now)


def test_what_is_reserved_begins_when_that_ends_and_without_an_executor_nobody_knows(wiring: Wiring) -> None:
    add(wiring, "one", 1.0, "queued", "a")
    end = wiring.coordinator.now() + 600
    wiring.coordinator.reserve("a", "ada@lab", end)
    with lock(wiring.settings.state_dir, QUEUE):
        (entry,) = read_queue(wiring).entries
    assert (entry.begins, list(entry.unusable)) == (end, ["a"])
    assert entry.unusable["a"].startswith("reserved by ada@lab")
    (entry,) = read_queue(wiring).entries
    assert (entry.begins, entry.ends) == (None, None)


def test_what_is_reserved_twice_begins_when_the_one_that_holds_now_ends(wiring: Wiring) -> None:
    add(wiring, "one", 1.0, "queued", "a")
    now = wiring.coordinator.now()
    wiring.coordinator.reserve("a", "ada@lab", now + 600)
    wiring.coordinator.reserve("a", "bob@lab", now + 7200, now + 3600)
    with lock(wiring.settings.state_dir, QUEUE):
        (entry,) = read_queue(wiring).entries
    assert entry.begins == now + 600


@pytest.mark.parametrize(
    ("later", "left"), [(100.0, 800.0), (-100.0, 1000.0), (1e6, 50.0)], ids=["usual", "set back", "overdue"]
)
def test_what_is_left_is_worked_off_by_each_testbed_that_measures(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch, later: float, left: float
) -> None:
    add(wiring, "one", 1.0, "running", "a", "b")
    for record in (booted("b1", "a"), booted("b2", "b")):
        wiring.store.append("one", record)
    wiring.store.decide("one", Measure(0, 1, "search", "why", left=1000.0))
    (summary,) = wiring.store.list()
    assert summary.progress.decided is not None
    now = summary.progress.decided + later
    monkeypatch.setattr(SqlCoordinator, "now", lambda _: now)
    with lock(wiring.settings.state_dir, QUEUE):
        (entry,) = read_queue(wiring).entries
    assert entry.left == pytest.approx(left)


def test_what_a_start_on_another_host_executes_has_its_end_told_without_any_worker(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Wiring, "shared_coordinator", property(lambda wiring: wiring.coordinator))
    add(wiring, "one", 1.0, "running", "a")
    wiring.store.append("one", booted("b1", "a"))
    wiring.store.decide("one", Measure(0, 1, "search", "why", left=1000.0))
    start = f"{START}box2:7"
    wiring.coordinator.register("e1", start)
    assert Membership(wiring.coordinator, "e1", start).acquire_bisection("one") is not None
    found = read_queue(wiring)
    (entry,) = found.entries
    assert (entry.status, found.executor) == ("running", None)
    assert entry.begins == found.now and entry.ends is not None


def test_in_a_state_file_no_testbed_waits_for_a_worker(wiring: Wiring, tmp_path: Path) -> None:
    path = tmp_path / "lab.yml"
    variables = {"a": {"perfbisect_kind": "local", "perfbisect_worker": "north"}}
    wiring.settings = wiring.settings.model_copy(update={"lab": path})
    wiring.lab = lab_from_inventory({"_meta": {"hostvars": variables}, "testbeds": {"hosts": ["a"]}}, path)
    add(wiring, "one", 1.0, "queued", "a")
    assert dict(read_queue(wiring).entries[0].unusable) == {}


def test_nobody_knows_when_what_is_in_maintenance_can_be_used_whoever_has_reserved_it(wiring: Wiring) -> None:
    add(wiring, "one", 1.0, "queued", "a")
    wiring.coordinator.reserve("a", "ada@lab", wiring.coordinator.now() + 600)
    wiring.coordinator.set_testbed("a", "maintenance", "new memory", "bob@lab")
    with lock(wiring.settings.state_dir, QUEUE):
        (entry,) = read_queue(wiring).entries
    assert entry.begins is None


def test_a_testbed_whose_worker_does_not_run_begins_nothing_whoever_has_reserved_it(
    wiring: Wiring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a reservation of a machine whose worker was dead, work was told to begin at its end."""
    monkeypatch.setattr(Wiring, "shared_coordinator", property(lambda wiring: wiring.coordinator))
    variables = {
        name: {"perfbisect_kind": "local", **({"perfbisect_worker": worker} if worker else {})}
        for name, worker in (("a", "south"), ("b", "north"), ("c", ""), ("d", "south"))
    }
    inventory = {"_meta": {"hostvars": variables}, "testbeds": {"hosts": list(variables)}}
    path = tmp_path / "lab.yml"
    wiring.settings = wiring.settings.model_copy(update={"lab": path})
    wiring.lab = lab_from_inventory(inventory, path)
    for created, name in enumerate(variables):
        add(wiring, name, float(created), "queued", name)
    coordinator = wiring.coordinator
    coordinator.register("n1", "north")
    for reserved in "ac":
        coordinator.reserve(reserved, "ada@lab", coordinator.now() + 600)
    found = read_queue(wiring)
    assert found.executor is not None and "worker 'north'" in found.executor
    a, b, c, d = found.entries
    assert [entry.begins is not None for entry in (a, b, c, d)] == [False, True, True, False]
    assert c.begins is not None and c.begins > found.now
    assert dict(d.unusable) == {"d": "its worker 'south' does not run"}
    assert (dict(b.unusable), list(c.unusable), list(a.unusable)) == ({}, ["c"], ["a"])
