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
from bisector.engine.membership import resource_of
from bisector.model.records import Booted, Ran
from bisector.model.stored_bisection import Stored
from bisector.schemas.database_url import DatabaseUrl
from tests.campaign.record_checks import repeated_records
from tests.support import fake_bisection as fake
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


def check(store: SqlStore, *names: str) -> None:
    """Check that bisections ended with the culprit, nothing was done twice and no number is missing."""
    for name in names:
        stored = store.load(name)
        assert (stored.status, stored.conclusion is not None) == ("done", True)
        assert stored.conclusion is not None
        assert stored.conclusion.findings[0].commits == (fake.CULPRIT,)
        rows = sorted([*store.records(name), *store.decisions(name)], key=lambda row: row[0])
        assert repeated_records(rows) == []
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


def test_a_worker_that_was_frozen_writes_nothing_more_and_ends(start: Start, store: SqlStore) -> None:
    queue(store, "one", "a")
    first = start("first", "a")
    until(lambda: boots(store, "one") >= 2, SECONDS)
    first.send_signal(signal.SIGSTOP)
    start("second", "a")
    before = boots(store, "one")
    until(lambda: boots(store, "one") > before, SECONDS)
    first.send_signal(signal.SIGCONT)
    assert first.wait(SECONDS) == 3
    until(lambda: done(store, "one"), SECONDS)
    check(store, "one")


def test_who_begins_takes_over_from_one_that_was_killed_long_ago(
    start: Start, store: SqlStore, database_url: DatabaseUrl
) -> None:
    """Nobody else lives that could have said that it is dead."""
    queue(store, "one", "a")
    first = start("first", "a")
    until(lambda: boots(store, "one") >= 2, SECONDS)
    first.kill()
    time.sleep(TTL + 0.5)
    coordinator = SqlCoordinator(open_server(database_url))
    assert [lease.resource for lease in coordinator.leases() if lease.resource == resource_of("one")]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(membership, "_TTL_SECONDS", TTL)
        with membership.join(coordinator, "next") as next_one:
            assert next_one.acquire_bisection("one") is not None


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
    check(store, *names)
    check_one_at_a_time(store, *names)
