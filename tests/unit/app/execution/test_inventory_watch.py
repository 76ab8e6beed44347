"""A worker's inventory changes while it runs: read again, told, and followed by its bisections."""

from __future__ import annotations

import os
import sys
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
from bisector.app.execution import inventory_watch
from bisector.app.execution.inventory_watch import InventoryWatch
from bisector.app.wiring import Wiring
from bisector.engine.events import Event
from bisector.engine.executor import serve
from bisector.engine.others import Others
from bisector.engine.services import Services
from bisector.errors import InfrastructureError, RequestError
from bisector.model.records import Booted
from bisector.model.stored_bisection import Stored, Summary
from bisector.schemas.database_url import database_url
from bisector.schemas.settings import Settings
from bisector.testing.fakes import Pace
from tests.support import fake_bisection as fake
from tests.support.waiting import until

KEXEC = "perfbisect_boot_method: kexec, ansible_ssh_private_key_file: /key"
HOST = f"{{ansible_host: 192.0.2.%d, perfbisect_worker: %s, {KEXEC}}}"


class Bench:
    """An inventory on disk; each `write` gives it a time of its own."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.path = folder / "lab.yml"
        self.told: list[str] = []
        self.time = 1_000_000_000
        self.write(a=1, b=2)
        values = {"lab": self.path, "cache_dir": folder / "cache", "state_dir": folder, **settings}
        self.wiring = Wiring(Settings.model_validate(values))
        self.watch = InventoryWatch(self.wiring, "north", self.told.append)

    def write(self, worker: str = "''", **hosts: int) -> None:
        lines = [f"      {name}: {HOST % (number, worker)}" for name, number in hosts.items()]
        self.path.write_text("\n".join(["all:", "  children:", "   testbeds:", "    hosts:", *lines, ""]))
        self.time += 1
        os.utime(self.path, (self.time, self.time))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(inventory_watch, "_REREAD_SECONDS", -1.0)
    return Bench(tmp_path)


def test_added_removed_and_changed_machines_are_noticed_and_told(bench: Bench) -> None:
    assert bench.watch.ours(("a", "b", "c")) == ["a", "b"]
    bench.write(a=1, c=3)
    assert bench.watch.ours(("a", "b", "c")) == ["a", "c"]
    bench.write(a=9, c=3)
    assert bench.watch.ours(("a",)) == ["a"]
    assert bench.wiring.lab.testbed("a").connection.address == "192.0.2.9", "the next boot goes there"
    assert bench.told == [
        "the inventory has changed: new testbeds: c; testbeds that are gone: b",
        "the inventory has changed: testbeds with other variables: a",
    ]


def test_what_cannot_be_read_is_told_once_and_changes_nothing(bench: Bench) -> None:
    assert bench.watch.ours(("a", "b")) == ["a", "b"]
    bench.path.write_text("all: [")
    assert bench.watch.ours(("a", "b")) == bench.watch.ours(("a", "b")) == ["a", "b"]
    assert len(bench.told) == 1
    assert bench.told[0].startswith("the inventory cannot be read; what it said before holds: ")
    bench.path.unlink()
    assert bench.watch.ours(("a",)) == ["a"]
    assert "no such inventory" in bench.told[1]
    bench.write(a=1, b=2)
    assert bench.watch.ours(("b",)) == ["b"]
    assert bench.told[2:] == ["the inventory can be read again"]


def test_on_a_database_server_other_workers_testbeds_are_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inventory_watch, "_REREAD_SECONDS", -1.0)
    bench = Bench(tmp_path, database=database_url("postgresql://u@h/d"))
    assert bench.watch.ours(("a",)) == ["a"]
    bench.write("south", a=1)
    assert bench.watch.ours(("a",)) == []
    bench.write("north", a=1)
    assert bench.watch.ours(("a",)) == ["a"]


def test_another_hosts_testbed_that_comes_in_is_left_out_and_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = MemoryCoordinator(time.time)
    monkeypatch.setattr(Wiring, "shared_coordinator", coordinator)
    monkeypatch.setattr(inventory_watch, "_REREAD_SECONDS", -1.0)
    bench = Bench(tmp_path, database=database_url("postgresql://u@h/d"))
    monkeypatch.setattr(
        sys.modules[__name__], "HOST", "{perfbisect_kind: local, perfbisect_cpus: %d, perfbisect_worker: %s}"
    )
    coordinator.bind_testbed("a", "elsewhere", move=False)
    for number in (1, 2, 3):
        bench.write(a=number, b=number)
        assert bench.watch.ours(("a", "b")) == ["b"]
    (told,) = [text for text in bench.told if "'a' is another machine on each host" in text]
    assert "'elsewhere' has it" in told and "set perfbisect_worker" in told
    bench.write("north", a=1)
    assert bench.watch.ours(("a",)) == ["a"], "the inventory says whose it is"


@pytest.mark.parametrize(("named", "kept"), [(False, ["a", "b"]), (True, ["a"])])
def test_a_machine_that_is_new_joins_bisections_that_run_unless_theirs_were_named(
    bench: Bench, tmp_path: Path, named: bool, kept: list[str]
) -> None:
    lab = fake.a_lab()
    accepted = fake.accepted(lab, ("a",))
    request = accepted.request.model_copy(update={"workload": "pipe-test"})
    accepted = accepted.model_copy(update={"testbeds_chosen": not named, "request": request})
    bench.write(a=1)
    bench.wiring.store.create(Stored("one", 1.0, accepted.model_dump_json(), "queued", lab.graph))
    assert bench.watch.of_bisection("one", ("a",)) == ["a"]
    bench.write(a=1, b=2)
    assert bench.watch.of_bisection("one", ("a",)) == kept
    assert bench.watch.of_bisection("gone", ("a",)) == ["a"]
    bench.write(b=2)
    assert bench.watch.of_bisection("one", ("a",)) == [], "with none of its own there is nothing to fit to"


def test_the_files_are_not_looked_at_each_time(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bench.watch.ours(("a",)) == ["a"]
    monkeypatch.setattr(inventory_watch, "_REREAD_SECONDS", 60.0)

    def fail(wiring: Wiring) -> None:
        raise InfrastructureError("it was read")

    monkeypatch.setattr(Wiring, "read_lab", fail)
    assert bench.watch.ours(("a",)) == ["a"]
    assert bench.told == []


class Worker:
    """A worker whose inventory a test changes while a bisection of 'a' and 'b' runs."""

    def __init__(self, folder: Path, *testbeds: str) -> None:
        self.names = list(testbeds)
        self.told: list[str] = []
        self.lab, self.folder = fake.a_lab(), folder
        self.store = SqlStore(open_state_file(folder / "perfbisect.sqlite"))
        self.stop = threading.Event()
        self.bisection = fake.begin(self.store, self.lab, ("a", "b")).id
        self.store.set_status(self.bisection, "queued")
        self.thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        others = Others(self._ours, self._open, lambda _, event: self._tell(event), lambda _: None)
        serve(self.store, self.folder, others, self.stop, until_idle=False)

    def _tell(self, event: Event) -> None:
        if event.kind == "trouble":
            self.told.append(event.text)

    def _ours(self, summary: Summary) -> list[str]:
        return [name for name in summary.testbeds if name in self.names]

    def _open(self, stored: Stored, stop: threading.Event) -> Services:
        pace = Pace(boot=0.03, run=0.01)
        testbeds = tuple(self._ours(next(s for s in self.store.list() if s.id == stored.id)))
        opened = fake.services(self.lab, self.folder, store=self.store, testbeds=testbeds, pace=pace)
        return replace(opened, claim=self._claim)

    @contextmanager
    def _claim(self, testbed: str, *_: object) -> Iterator[Callable[[], bool]]:
        if testbed not in self.names:
            raise RequestError(f"the lab has no testbed '{testbed}'")
        yield lambda: False

    def boots(self) -> list[str]:
        """Return the testbed of each boot so far."""
        return [r.testbed for _, r in self.store.records(self.bisection) if isinstance(r, Booted)]

    @property
    def status(self) -> str:
        return self.store.status(self.bisection)

    def __enter__(self) -> Worker:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join(60)
        assert not self.thread.is_alive()


SECONDS = 60.0


def test_a_machine_that_is_removed_is_used_no_more_and_the_search_goes_on(tmp_path: Path) -> None:
    with Worker(tmp_path, "a", "b") as lab:
        until(lambda: {"a", "b"} <= set(lab.boots()), SECONDS)
        lab.names.remove("b")
        until(lambda: lab.told != [], SECONDS)
        assert lab.told == [f"the bisection '{lab.bisection}' goes on with a: the inventory has changed"]
        until(lambda: lab.status == "done", SECONDS)
        order = lab.boots()
    assert order[-1] == "a"


def test_a_machine_that_is_added_or_comes_back_is_used(tmp_path: Path) -> None:
    with Worker(tmp_path, "a") as lab:
        until(lambda: lab.boots() != [], SECONDS)
        lab.names.append("b")
        until(lambda: "b" in lab.boots(), SECONDS)
        until(lambda: lab.status == "done", SECONDS)
    assert lab.told == [f"the bisection '{lab.bisection}' goes on with a, b: the inventory has changed"]


def test_a_bisection_whose_every_machine_is_gone_or_renamed_waits_says_so_and_goes_on(tmp_path: Path) -> None:
    with Worker(tmp_path, "a", "b") as lab:
        until(lambda: lab.boots() != [], SECONDS)
        lab.names[:] = ["c"]
        until(lambda: lab.status == "queued", SECONDS)
        assert lab.told[0].startswith(f"the bisection '{lab.bisection}' is not executed here until the inven")
        assert lab.thread.is_alive()
        lab.names[:] = ["a"]
        until(lambda: lab.status == "done", SECONDS)
        conclusion = lab.store.load(lab.bisection).conclusion
    assert conclusion is not None and conclusion.findings[0].commits == (fake.CULPRIT,)
