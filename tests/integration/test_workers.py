"""Workers on one PostgreSQL server: killed and frozen ones are replaced, and nothing is done twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

import pytest

from bisector.adapters.store.open_database import open_server
from bisector.adapters.store.sql_coordinator import SqlCoordinator
from bisector.adapters.store.sql_store import SqlStore
from bisector.engine import membership
from bisector.model.records import Booted, Ran
from bisector.model.stored_bisection import Stored
from bisector.schemas.database_url import DatabaseUrl
from tests.campaign.record_checks import repeated_records
from tests.support import fake_bisection as fake
from tests.support.servers.postgres import Server
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
TTL = 2.0
SECONDS = 120.0

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(database_url: DatabaseUrl, tmp_path: Path) -> Iterator[Start]:
    """Return what starts a worker by its name, with testbeds of its own."""
    started: list[subprocess.Popen[str]] = []

    def run(name: str, *testbeds: str) -> subprocess.Popen[str]:
        folder = tmp_path / f"{name}-{len(started)}"
        folder.mkdir()
        program = [sys.executable, str(ROOT / "tests/support/servers/fake_worker.py")]
        with (tmp_path / "said").open("a") as said:
            started.append(
                subprocess.Popen(
                    [*program, database_url.secret, str(folder), name, str(TTL), *testbeds],
                    cwd=ROOT,
                    env={**os.environ, "PYTHONPATH": str(ROOT)},
                    stdout=said,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def store(database_url: DatabaseUrl) -> SqlStore:
    return SqlStore(open_server(database_url))


def queue(store: SqlStore, name: str, *testbeds: str) -> None:
    lab = fake.a_lab()
    request = fake.accepted(lab, testbeds).model_dump_json()
    store.create(Stored(name, time.time(), request, "queued", lab.graph))


def check(store: SqlStore, *names: str, but_left: bool = False) -> None:
    """Check that bisections ended with the culprit, nothing was done twice and no number is missing.

    but_left: the boot that a killed worker had may not be told to be over, for nobody used the testbed again.
    """
    for name in names:
        stored = store.load(name)
        assert (stored.status, stored.conclusion is not None) == ("done", True)
        assert stored.conclusion is not None
        assert stored.conclusion.findings[0].commits == (fake.CULPRIT,)
        deadline = time.monotonic() + SECONDS
        while True:  # the others leave their boots when they see that it is over
            rows = sorted([*store.records(name), *store.decisions(name)], key=lambda row: row[0])
            wrong = repeated_records(rows)
            waits = [one for one in wrong if one.endswith("was left 0 times")]
            if but_left or not waits or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        # Workers that share no kernels build one each when they need it at the same time.
        wrong = [one for one in wrong if not (one.startswith("built ") or (but_left and one in waits))]
        assert wrong == []
        assert [number for number, _ in rows] == list(range(1, len(rows) + 1))


def check_one_at_a_time(store: SqlStore, *names: str) -> None:
    """Check that the recorded runs of two boots on one testbed never mingle."""
    testbed_of: dict[tuple[str, str], str] = {}
    runs = []
    for name in names:
        for _, record in store.records(name):
            if isinstance(record, Booted):
                testbed_of[name, record.boot] = record.testbed
            elif isinstance(record, Ran):
                runs.append((record.at, name, record.boot))
    for testbed in set(testbed_of.values()):
        order = [(name, boot) for _, name, boot in sorted(runs) if testbed_of[name, boot] == testbed]
        boots_in_turn = [boot for boot, _ in groupby(order)]
        assert len(boots_in_turn) == len(set(boots_in_turn)), boots_in_turn


def done(store: SqlStore, *names: str) -> bool:
    return all(store.status(name) == "done" for name in names)


def boots(store: SqlStore, name: str) -> int:
    return sum(isinstance(record, Booted) for _, record in store.records(name))


def test_each_worker_executes_what_its_testbeds_can_and_nobody_the_same_twice(
    start: Start, store: SqlStore
) -> None:
    queue(store, "on-a", "a")
    queue(store, "on-b", "b")
    queue(store, "on-both", "a", "b")
    for name in "ab":
        start(name, name)
    until(lambda: done(store, "on-a", "on-b", "on-both"), SECONDS)
    check(store, "on-a", "on-b", "on-both")


def test_one_bisection_is_measured_by_all_workers_that_have_its_testbeds(
    start: Start, store: SqlStore
) -> None:
    queue(store, "one", "a", "b")
    for name in "ab":
        start(name, name)
    until(lambda: done(store, "one"), SECONDS)
    check(store, "one")
    used = {record.testbed for _, record in store.records("one") if isinstance(record, Booted)}
    assert used == {"a", "b"}


def test_one_bisection_goes_on_with_the_workers_that_are_left(start: Start, store: SqlStore) -> None:
    queue(store, "one", "a", "b")
    first, _ = start("first", "a"), start("second", "b")
    until(lambda: boots(store, "one") >= 4, SECONDS)
    first.kill()
    until(lambda: done(store, "one"), SECONDS)
    check(store, "one", but_left=True)


def test_after_an_outage_all_workers_go_on(
    start: Start, store: SqlStore, postgres: Server, database_url: DatabaseUrl
) -> None:
    """It is longer than what a dead executor is silent."""
    queue(store, "one", "a", "b")
    workers = [start(name, name) for name in "ab"]
    until(lambda: boots(store, "one") >= 3, SECONDS)
    postgres.stop()
    time.sleep(2 * TTL)
    postgres.start()
    until(lambda: done(store, "one"), SECONDS)
    check(store, "one")
    assert [worker.poll() for worker in workers] == [None, None]


def test_two_workers_of_one_name_are_refused(
    start: Start, store: SqlStore, database_url: DatabaseUrl
) -> None:
    start("one", "a")
    coordinator = SqlCoordinator(open_server(database_url))
    until(lambda: len(coordinator.executors()) == 1, SECONDS)
    assert start("one", "b").wait(SECONDS) == 1


def test_what_a_killed_worker_executed_goes_on_with_another(start: Start, store: SqlStore) -> None:
    queue(store, "one", "a")
    first = start("first", "a")
    until(lambda: boots(store, "one") >= 2, SECONDS)
    first.kill()
    start("second", "a")
    until(lambda: done(store, "one"), SECONDS)
    check(store, "one")


def test_a_worker_that_was_frozen_writes_nothing_more_and_goes_on_as_another(
    start: Start, store: SqlStore, database_url: DatabaseUrl, tmp_path: Path
) -> None:
    queue(store, "one", "a")
    first = start("first", "a")
    until(lambda: boots(store, "one") >= 2, SECONDS)
    first.send_signal(signal.SIGSTOP)
    start("second", "a")
    before = boots(store, "one")
    until(lambda: boots(store, "one") > before, SECONDS)
    coordinator = SqlCoordinator(open_server(database_url))
    first.send_signal(signal.SIGCONT)
    until(lambda: [e.name for e in coordinator.executors() if not e.fenced] == ["first", "second"], SECONDS)
    until(lambda: done(store, "one"), SECONDS)
    check(store, "one")
    told = [line for line in (tmp_path / "said").read_text().splitlines() if line.startswith("worker ")]
    assert told and told[0].endswith("; what was under way is given up, and it goes on as a new one")


def test_who_begins_takes_over_from_one_that_was_killed_long_ago(
    start: Start, store: SqlStore, database_url: DatabaseUrl, tmp_path: Path
) -> None:
    """Nobody else lives that could have said that it is dead."""
    queue(store, "one", "a")
    first = start("first", "a")
    until(lambda: boots(store, "one") >= 2, SECONDS)
    first.kill()
    time.sleep(TTL + 0.5)
    coordinator = SqlCoordinator(open_server(database_url))
    assert [
        lease.resource for lease in coordinator.leases() if lease.resource == membership.testbed_resource("a")
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(membership, "_TTL_SECONDS", TTL)
        with membership.join(coordinator, "next", tmp_path) as next_one:
            until(lambda: next_one.acquire_testbed("a") is not None, SECONDS)


@pytest.mark.parametrize("seed", range(1, int(os.environ.get("WORKER_SEEDS", "1")) + 1))
def test_killed_and_frozen_at_random_moments_workers_end_all_bisections(
    start: Start, store: SqlStore, seed: int
) -> None:
    """Three bisections on two testbeds and two workers; each worker that has ended is replaced."""
    names = ("x", "y", "z")
    for name in names:
        queue(store, name, "a", "b")
    chance = random.Random(seed)
    number = 2
    workers = [start("w0", "a", "b"), start("w1", "a", "b")]
    frozen: list[subprocess.Popen[str]] = []
    for _ in range(6):
        time.sleep(chance.uniform(0.3, 1.5))
        if done(store, *names):
            break
        victim = workers.pop(chance.randrange(2))
        if chance.random() < 0.5:
            victim.kill()
        else:
            victim.send_signal(signal.SIGSTOP)
            frozen.append(victim)
        workers.append(start(f"w{number}", "a", "b"))
        number += 1
    time.sleep(TTL)
    for victim in frozen:
        victim.send_signal(signal.SIGCONT)
    until(lambda: done(store, *names), SECONDS)
    check(store, *names, but_left=True)
    check_one_at_a_time(store, *names)
