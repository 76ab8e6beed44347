"""Bisections in a PostgreSQL database, from the command line: faults of the server, a full disk, backups."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from bisector.adapters.store import migration, postgres_server
from bisector.adapters.store.open_database import connect, open_server, open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError
from bisector.interfaces.cli import run
from bisector.model.records import Built, RunFailed
from bisector.model.stored_bisection import Stored
from bisector.schemas.database_url import DatabaseUrl
from bisector.schemas.settings import load_settings
from bisector.simulation.histories import linear
from tests.support.command_line import START, Bench, said
from tests.support.servers.postgres import ESCAPED, PASSWORD, Server
from tests.support.servers.web import make_tokens
from tests.support.small_disk import mounted
from tests.support.waiting import until

SECONDS = 120.0
"""Longest wait for what another thread does."""


@pytest.fixture
def in_use(database_url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch) -> DatabaseUrl:
    """The address that the settings have."""
    monkeypatch.setenv("PERFBISECT_DATABASE", database_url.secret)
    return database_url


def all_events(store: SqlStore) -> list[tuple[int, str]]:
    """Return the numbers and types of all events of the one bisection, in their order."""
    (one,) = store.list()
    events = [*store.records(one.id), *store.decisions(one.id)]
    return sorted((number, type(event).__name__) for number, event in events)


def test_a_bisection_goes_on_through_broken_connections_and_crashes(
    bench: Bench,
    in_use: DatabaseUrl,
    postgres: Server,
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = threading.Event()
    hurt: list[str] = []

    def hurt_it() -> None:
        while not done.wait(0.1):
            hurt.append("broken" if len(hurt) % 4 else "crashed")
            with contextlib.suppress(psycopg.OperationalError):  # it is still recovering
                if hurt[-1] == "crashed":
                    postgres.crash()
                else:
                    postgres.break_connections(in_use.name)

    thread = threading.Thread(target=hurt_it)
    thread.start()
    try:
        code = run(START)
    finally:
        done.set()
        thread.join(60)
    out, err = capsys.readouterr()
    assert code == 0, err
    assert "crashed" in hurt
    assert PASSWORD not in out + err and ESCAPED not in out + err
    assert not (bench.state / "perfbisect.sqlite").exists()
    numbers = [number for number, _ in all_events(SqlStore(open_server(in_use)))]
    assert numbers == list(range(1, len(numbers) + 1))
    assert "done" in said(capsys, "list")
    assert said(capsys, "db", "check").endswith("nothing is wrong\n")


def test_a_server_that_is_down_is_waited_for_and_told(
    own_folders: Path,
    in_use: DatabaseUrl,
    postgres: Server,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    postgres.stop()
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(run(["list"])))
    try:
        monkeypatch.setattr(postgres_server, "FIRST_WAIT_SECONDS", 0.3)
        assert run(["list"]) == 3
        err = capsys.readouterr().err
        assert f"error: the database {in_use} does not answer" in err and "cure: start the server" in err
        monkeypatch.setattr(postgres_server, "FIRST_WAIT_SECONDS", 60.0)
        thread.start()
        time.sleep(0.5)
    finally:
        postgres.start()
    thread.join(90)
    assert codes == [0]
    told = capsys.readouterr().err
    assert f"the database {in_use} does not answer (Connection refused); waiting for it" in told
    assert f"the database {in_use} answers again" in told


@pytest.fixture
def web(in_use: DatabaseUrl) -> Iterator[str]:
    """The address of a web server on the database, which waits a second for it."""
    impatient = "from bisector.interfaces.cli import main, web; web.DATABASE_SECONDS = 1.0; main()"
    command = [sys.executable, "-c", impatient, "web", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        serving = re.search(r"serving (http://127\.0\.0\.1:\d+)/;", process.stderr.readline())
        try:
            assert serving is not None
            yield serving[1]
        finally:
            process.terminate()
            process.communicate()


def test_pages_say_soon_that_the_database_is_away_and_go_on_with_it(
    own_folders: Path, in_use: DatabaseUrl, web: str, postgres: Server
) -> None:
    secret = make_tokens(Wiring(load_settings()))["read"]
    headers = {"Authorization": f"Bearer {secret}"}
    with (
        httpx.Client(base_url=web, headers=headers, timeout=SECONDS) as client,
        client.stream("GET", "/changes") as stream,
    ):
        lines = filter(None, stream.iter_lines())
        assert next(lines) == "event: changed"
        postgres.stop()
        try:
            for path in ("/bisections", "/api/v1/bisections"):
                answer = client.get(path)
                assert answer.status_code == 503 and "does not answer, for " in answer.text, answer.text
                assert PASSWORD not in answer.text
                assert answer.headers["Retry-After"] == "30"
            assert ": the database is away" in lines
        finally:
            postgres.start()
        assert client.get("/bisections").status_code == 200
        SqlStore(open_server(in_use)).create(Stored("one", 1.0, "{}", "new", linear(3)))
        assert "event: changed" in lines, "the stream has outlived it"


def test_ctrl_c_while_the_server_is_down_is_an_interruption_that_says_so(
    bench: Bench, in_use: DatabaseUrl, postgres: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ended with 3, after which a script that does as the docs have it goes on by itself."""
    here, store, heard = threading.get_ident(), SqlStore(open_server(in_use)), [""]

    def told() -> str:
        heard.append(capsys.readouterr().err)
        return "".join(heard)

    def lose_it_and_interrupt() -> None:
        until(lambda: any(len(list(store.records(one.id))) > 5 for one in store.list()), SECONDS)
        postgres.stop()
        until(lambda: "does not answer" in told(), SECONDS)
        signal.pthread_kill(here, signal.SIGINT)

    thread = threading.Thread(target=lose_it_and_interrupt)
    thread.start()
    try:
        code = run(START)
        thread.join(SECONDS)
        error = told().rpartition("error: ")[2]
    finally:
        postgres.start()
    assert code == 130, error
    assert "is interrupted; nothing is lost" in error and "does not answer, for " in error
    assert run(["resume"]) == 0


def test_a_wrong_password_is_told_without_it(
    own_folders: Path,
    in_use: DatabaseUrl,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PERFBISECT_DATABASE", in_use.secret.replace(ESCAPED, "guessed"))
    for command in ("list", "db check"):
        assert run(command.split()) == 3
        out, err = capsys.readouterr()
        assert 'password authentication failed for user "postgres"' in err and "cure:" in err
        assert "guessed" not in out + err
    monkeypatch.setenv("PERFBISECT_DATABASE", in_use.secret.replace(f":{ESCAPED}", ""))
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert run(["list"]) == 0


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_cannot_hold_every_text_is_refused_at_once(
    own_folders: Path,
    postgres: Server,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    encoding: str,
) -> None:
    """A cluster made in the C locale has SQL_ASCII, which failed at the first command as a defect."""
    postgres.execute(f"CREATE DATABASE other_letters TEMPLATE template0 ENCODING '{encoding}'")
    try:
        url = postgres.url("other_letters")
        monkeypatch.setenv("PERFBISECT_DATABASE", url.secret)
        for command in ("list", "db upgrade --yes"):
            assert run(command.split()) == 3
            err = capsys.readouterr().err
            assert f"the database {url} has the encoding {encoding}" in err
            assert "createdb --owner perfbisect --template template0 --encoding UTF8" in err
    finally:
        postgres.break_connections("other_letters")
        postgres.execute("DROP DATABASE other_letters")


def test_texts_in_all_letters_arrive_whatever_the_environment_says_of_the_encoding(
    own_folders: Path,
    database_url: DatabaseUrl,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    monkeypatch.setenv("PERFBISECT_OWNER", "ann")
    inventory = own_folders / "lab.yml"
    inventory.write_text("testbeds: {hosts: {box: {perfbisect_kind: local, ansible_connection: local}}}\n")
    monkeypatch.setenv("PERFBISECT_LAB", str(inventory))
    said(capsys, "testbed", "drain", "box", "--reason", "10 € \u2014 neu")
    said(capsys, "db", "move", database_url.secret, "--yes")
    monkeypatch.setenv("PERFBISECT_DATABASE", database_url.secret)
    (found,) = json.loads(said(capsys, "testbed", "list", "--json"))
    assert found["reason"] == "10 € \u2014 neu"


@pytest.fixture
def full_disk(postgres: Server) -> Iterator[DatabaseUrl]:
    """Return the address of a database whose disk has a few megabytes."""
    with mounted(postgres.folder / "small", 40) as folder:
        (folder / "filler").write_bytes(bytes(4_000_000))
        space = folder / "space"
        space.mkdir()
        shutil.chown(space, "postgres", "postgres")
        postgres.execute(f"CREATE TABLESPACE small LOCATION '{space}'")
        url = postgres.new_database(tablespace="small")
        yield url
        postgres.break_connections(url.name)
        postgres.execute(f"DROP DATABASE {url.name}")
        postgres.execute("DROP TABLESPACE small")


def test_a_full_disk_of_the_server_is_told_and_loses_nothing(
    full_disk: DatabaseUrl, postgres: Server
) -> None:
    migration.upgrade(connect(full_disk), lambda text: None)
    store = SqlStore(open_server(full_disk))
    store.create(Stored("one", 1.0, "{}", "new", linear(3)))
    large, written = os.urandom(40_000).hex(), 0
    with pytest.raises(InfrastructureError, match=r"cannot be used: could not (extend|write)") as error:
        while written < 1000:
            store.append("one", RunFailed("b", large[written:] + large[:written]))
            written += 1
    assert "free space" in error.value.cure and error.value.exit_code == 3
    assert written > 10
    assert [number for number, _ in store.records("one")] == list(range(1, written + 1))
    (postgres.folder / "small" / "filler").unlink()
    assert store.append("one", Built(1, True, 1.0)) == written + 1, "it goes on once there is space"


def test_a_dump_restores_all(
    bench: Bench, in_use: DatabaseUrl, postgres: Server, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As docs/how-to/database.md has it."""
    assert run(START) == 0
    where = ["--host=127.0.0.1", f"--port={postgres.port}", "--username=postgres"]
    environment = {**os.environ, "PGPASSWORD": PASSWORD}
    dump = tmp_path / "perfbisect.dump"
    subprocess.run(
        [postgres.programs / "pg_dump", *where, "--format=custom", f"--file={dump}", in_use.name],
        env=environment,
        check=True,
    )
    restored = postgres.new_database()
    subprocess.run(
        [postgres.programs / "pg_restore", *where, f"--dbname={restored.name}", "--exit-on-error", dump],
        env=environment,
        check=True,
    )
    old, new = SqlStore(open_server(in_use)), SqlStore(open_server(restored))
    assert all_events(new) == all_events(old) and len(all_events(old)) > 20
    (one,) = old.list()
    assert new.load(one.id) == old.load(one.id)


def test_a_copy_of_the_sqlite_file_restores_all(
    bench: Bench, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As docs/how-to/database.md has it, while another process has the file open."""
    assert run(START) == 0
    file = bench.state / "perfbisect.sqlite"
    old = SqlStore(open_state_file(file))
    copy = tmp_path / "backup" / "perfbisect.sqlite"
    copy.parent.mkdir()
    if shutil.which("sqlite3") is None:
        pytest.skip("needs the program sqlite3 (apt install sqlite3)")
    subprocess.run(["sqlite3", file, f".backup {copy}"], check=True)
    assert all_events(SqlStore(open_state_file(copy))) == all_events(old)
