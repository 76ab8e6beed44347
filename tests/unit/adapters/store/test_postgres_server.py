"""A PostgreSQL server that is away, refuses, breaks connections or is full."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest.mock import patch

import psycopg
import pytest

from bisector.adapters.store import postgres_server
from bisector.adapters.store.database import Constrained
from bisector.adapters.store.open_database import open_server
from bisector.adapters.store.postgres_server import PostgresServer
from bisector.adapters.store.sql_coordinator import SqlCoordinator
from bisector.adapters.store.sql_store import SqlStore
from bisector.adapters.store.sql_trials import check_lease
from bisector.errors import InfrastructureError
from bisector.model.records import Built
from bisector.model.stored_bisection import Stored
from bisector.schemas.database_url import DatabaseUrl
from bisector.simulation.histories import linear
from tests.support.servers.postgres import ESCAPED, PASSWORD, Server

RECORD = Built(1, True, 1.0)


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def database(database_url: DatabaseUrl, told: list[str]) -> Iterator[PostgresServer]:
    server = PostgresServer(database_url, told.append)
    server.execute("CREATE TABLE IF NOT EXISTS texts (id TEXT PRIMARY KEY, note TEXT REFERENCES texts (id))")
    yield server
    server.execute("DROP TABLE texts")
    server.close()


def ids(database: PostgresServer) -> list[str]:
    return [row["id"] for row in database.execute("SELECT id FROM texts ORDER BY id")]


def insert(database: PostgresServer, id: str, note: str | None = None) -> None:
    database.execute("INSERT INTO texts (id, note) VALUES (:id, :note)", id=id, note=note)


def test_a_transaction_happens_whole_or_not_at_all(database: PostgresServer) -> None:
    def interrupted() -> None:
        insert(database, "a")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        database.transact(interrupted)
    assert ids(database) == []
    database.transact(lambda: insert(database, "100%: :b"))
    assert ids(database) == ["100%: :b"]
    with pytest.raises(Constrained):
        insert(database, "100%: :b")
    with pytest.raises(Constrained):
        database.transact(lambda: insert(database, "c", "nobody"))
    assert ids(database) == ["100%: :b"]


def test_threads_have_transactions_of_their_own(database: PostgresServer) -> None:
    inside, outside = threading.Event(), threading.Event()

    def slow() -> None:
        insert(database, "slow")
        inside.set()
        outside.wait(20)
        raise ValueError("undo")

    def run() -> None:
        with pytest.raises(ValueError, match="undo"):
            database.transact(slow)

    thread = threading.Thread(target=run)
    thread.start()
    inside.wait(20)
    insert(database, "other")
    outside.set()
    thread.join(20)
    assert ids(database) == ["other"]


def test_reads_and_writes_go_on_after_a_restart(
    database: PostgresServer, database_url: DatabaseUrl, postgres: Server, told: list[str]
) -> None:
    insert(database, "a")
    found: list[str] = []

    def use() -> None:
        insert(database, "b")
        found.extend(ids(database))

    postgres.stop()
    thread = threading.Thread(target=use)
    try:
        thread.start()
        while not told and thread.is_alive():
            time.sleep(0.05)
    finally:
        postgres.start()
    thread.join(60)
    assert found == ["a", "b"]
    assert len(told) == 2
    assert told[0].startswith(f"the database {database_url} does not answer (")
    assert told[1] == f"the database {database_url} answers again"


def test_a_transaction_whose_connection_breaks_happens_once(
    database: PostgresServer, database_url: DatabaseUrl, postgres: Server
) -> None:
    calls = []

    def work() -> int:
        calls.append(1)
        insert(database, f"a{len(calls)}")
        if len(calls) == 1:
            postgres.break_connections(database_url.name)
        insert(database, f"b{len(calls)}")
        return len(calls)

    assert database.transact(work) == 2
    assert ids(database) == ["a2", "b2"]


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_whose_answer_is_lost_is_not_repeated(
    database: PostgresServer, monkeypatch: pytest.MonkeyPatch, committed: bool, single: bool
) -> None:
    """The connection breaks behind COMMIT or before it: the program sees the same."""
    execute = psycopg.Connection.execute
    broken: list[int] = []

    def breaking(connection: Any, query: Any, *more: Any, **named: Any) -> Any:
        if query == "COMMIT" and not broken:
            broken.append(1)
            if committed:
                execute(connection, query)
            connection.close()
            raise psycopg.OperationalError("the connection is lost")
        return execute(connection, query, *more, **named)

    monkeypatch.setattr(psycopg.Connection, "execute", breaking)
    if single:
        (row,) = database.execute("INSERT INTO texts (id) VALUES ('x') RETURNING id")
        assert (row["id"], ids(database)) == ("x", ["x"])
        return
    calls = []

    def work() -> str:
        calls.append(1)
        insert(database, f"id-{len(calls)}")
        return "done"

    assert database.transact(work) == "done"
    assert ids(database) == [f"id-{1 if committed else 2}"]
    assert len(calls) == (1 if committed else 2)


def test_a_transaction_that_a_crashed_server_does_not_know_has_not_happened(database: PostgresServer) -> None:
    """It gives the numbers again that were not on its disk when it crashed."""

    def ask(connection: postgres_server.Connection) -> bool:
        (row,) = connection.execute("SELECT pg_current_xact_id()::text AS id").fetchall()
        marks = {"id": str(int(row["id"]) + 1000), "written": "0/1", "recovered": None}
        return postgres_server._has_happened(connection, marks)

    assert database._on_connection(ask) is False


def test_a_number_that_a_crashed_server_gives_again_is_not_ours(
    database: PostgresServer, postgres: Server
) -> None:
    def number() -> dict[str, Any]:
        insert(database, "x")
        marks = postgres_server._marks(database._local.connection)
        assert marks is not None
        return marks

    for _ in range(20):
        lost: dict[str, Any] = {}

        def crash(found: dict[str, Any] = lost) -> None:
            found.update(number())
            postgres.stop()
            postgres.start()
            raise LookupError

        with pytest.raises(LookupError):
            database.transact(crash)
        after = database.transact(number)
        assert database._on_connection(partial(postgres_server._has_happened, marks=after))
        assert not database._on_connection(partial(postgres_server._has_happened, marks=lost))
        database.execute("DELETE FROM texts")
        if after["id"] == lost["id"]:
            return
    pytest.fail("the server never gave a number again")


def test_a_statement_that_always_breaks_its_connection_is_given_up(
    database: PostgresServer, database_url: DatabaseUrl
) -> None:
    with pytest.raises(InfrastructureError, match="cannot be used") as error:
        database.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    assert error.value.cure


def test_records_are_stored_once_while_connections_break(database_url: DatabaseUrl, postgres: Server) -> None:
    store = SqlStore(open_server(database_url))
    store.create(Stored("one", 1.0, "{}", "new", linear(3)))
    writes, done = 40, threading.Event()
    numbers: list[int] = []

    def write() -> None:
        numbers.extend(store.append("one", RECORD) for _ in range(writes))

    def hurt() -> None:
        for _ in range(10):  # not for ever: on a busy machine a transaction takes longer than a pause
            if not done.wait(0.2):
                postgres.break_connections(database_url.name)

    threads = [threading.Thread(target=write) for _ in range(2)]
    hurting = threading.Thread(target=hurt)
    for thread in (*threads, hurting):
        thread.start()
    for thread in threads:
        thread.join(60)
    done.set()
    hurting.join(20)
    assert sorted(numbers) == [number for number, _ in store.records("one")] == list(range(1, 2 * writes + 1))


def test_a_write_that_is_under_way_ends_before_its_executor_is_fenced(database_url: DatabaseUrl) -> None:
    database, other = PostgresServer(database_url), PostgresServer(database_url)
    SqlStore(database).create(Stored("one", 1.0, "{}", "new", linear(3)))
    SqlCoordinator(database).register("e", "w")
    lease = SqlCoordinator(database).acquire("guest", "e")
    assert lease is not None
    checked = threading.Event()

    def work() -> None:
        check_lease(database, lease)
        checked.set()
        time.sleep(0.5)
        database.execute("UPDATE bisections SET status = 'written'")

    thread = threading.Thread(target=lambda: database.transact(work))
    thread.start()
    checked.wait(20)
    assert [e.id for e in SqlCoordinator(other).fence_silent(0.0)] == ["e"]
    assert SqlStore(other).status("one") == "written"
    thread.join(20)


def test_who_freezes_in_a_transaction_loses_its_locks(
    database_url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_server, "_IDLE_IN_TRANSACTION", "200ms")
    store = SqlStore(open_server(database_url))
    store.create(Stored("one", 1.0, "{}", "new", linear(3)))
    frozen = PostgresServer(database_url)
    attempts = []

    def work() -> None:
        attempts.append(1)
        frozen.execute("SELECT id FROM bisections WHERE id = 'one' FOR UPDATE")
        if len(attempts) == 1:
            assert store.append("one", RECORD) == 1, "waits until the lock is free"
            frozen.execute("UPDATE bisections SET status = 'stale'")

    frozen.transact(work)
    assert len(attempts) == 2, "the first transaction was undone"
    assert store.status("one") == "new"


@pytest.mark.parametrize(
    ("change", "said", "cure"),
    [
        ((ESCAPED, "guessed"), "password authentication failed", "~/.pgpass"),
        (("postgres:", "nobody:"), "password authentication failed", "~/.pgpass"),
        ((f":{ESCAPED}", ""), "no password supplied", "PGPASSWORD"),
        (("/test_", "/elsewhere_"), "does not exist", "perfbisect db upgrade"),
        (("127.0.0.1", "no.such.host.invalid"), "failed to resolve host", "mend the host"),
    ],
)
def test_what_is_refused_is_told_at_once(
    change: tuple[str, str], said: str, cure: str, database_url: DatabaseUrl, told: list[str]
) -> None:
    url = DatabaseUrl(database_url.secret.replace(*change, 1))
    with pytest.raises(InfrastructureError) as refused:
        PostgresServer(url, told.append).execute("SELECT 1")
    error = refused.value
    assert error.message.startswith(f"the database {url} cannot be used: ") and said in error.message
    assert cure in error.cure and told == []
    for secret in (PASSWORD, ESCAPED, "guessed"):
        assert secret not in error.message + error.details + error.cure


def test_a_server_that_never_answers_is_given_up(
    database_url: DatabaseUrl, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_server, "FIRST_WAIT_SECONDS", 0.5)
    url = DatabaseUrl("postgresql://eve:hunter2@127.0.0.1:1/perf")
    with pytest.raises(InfrastructureError, match=r"eve@127.0.0.1:1/perf does not answer, for \d s") as error:
        PostgresServer(url, told.append).execute("SELECT 1")
    assert "PERFBISECT_DATABASE" in error.value.cure and error.value.exit_code == 3
    assert len(told) == 1 and "Connection refused" in told[0]
    assert "hunter2" not in told[0] + error.value.message + error.value.details


def test_who_is_told_to_stop_waits_no_longer_for_a_server(
    database_url: DatabaseUrl, told: list[str], postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_server, "_STOPPED_SECONDS", 0.3)
    stop = threading.Event()
    server = PostgresServer(database_url, told.append, stop.is_set)
    server.execute("SELECT 1")
    stop.set()
    assert server.execute("SELECT 2 AS two") == [{"two": 2}], "one that answers is used"
    stop.clear()
    postgres.stop()
    threading.Timer(1.0, stop.set).start()
    try:
        with pytest.raises(InfrastructureError, match="does not answer"):
            server.execute("SELECT 1")
        assert stop.is_set()
        with patch.object(psycopg, "connect", wraps=psycopg.connect) as asked:
            with pytest.raises(InfrastructureError, match="does not answer"):
                server.execute("SELECT 1")
            assert asked.call_count == 1, "it waited anew with each statement that ends a bisection, 2 s each"
    finally:
        postgres.start()


def test_a_database_without_tables_is_refused_with_the_cure(postgres: Server) -> None:
    with pytest.raises(InfrastructureError, match="has no tables of perfbisect yet") as error:
        open_server(postgres.url("postgres"))
    assert error.value.cure == "perfbisect db upgrade"


def test_an_error_of_the_server_is_told_with_its_cure(database: PostgresServer, postgres: Server) -> None:
    with pytest.raises(InfrastructureError, match='relation "nothing" does not exist') as error:
        database.execute("SELECT 1 FROM nothing")
    assert "restore a backup" in error.value.cure
    insert(database, "a")
    assert ids(database) == ["a"], "the connection is good for others"
