"""State files of earlier versions: nothing is lost, whenever the conversion ends."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest
from alembic import command
from sqlalchemy.exc import OperationalError

from bisector.adapters.store import migration
from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.app.wiring import Wiring
from bisector.engine.state_lock import is_executed, lock
from bisector.errors import InfrastructureError, RequestError
from bisector.model.decisions import Ending
from bisector.model.records import Ran
from bisector.model.stored_bisection import NORMAL_PRIORITY
from bisector.schemas.settings import Settings

DATA = Path(__file__).parent / "data"
"""state-2.sqlite: two bisections of one graph, one ended and one interrupted, and one that was cancelled."""
ROOT = Path(__file__).parents[4]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    shutil.copy(DATA / "state-2.sqlite", tmp_path / "perfbisect.sqlite")
    return tmp_path / "perfbisect.sqlite"


def rows(path: Path, statement: str) -> list[Any]:
    with sqlite3.connect(path) as connection:
        return connection.execute(statement).fetchall()


def make_large(path: Path, count: int = 1200) -> None:
    """Add copies of the ended bisection, each with its records."""
    with sqlite3.connect(path) as connection:
        for number in range(count):
            connection.execute(
                "insert into bisections (id, created, request, status, graph, conclusion) "
                "select ?, created - ?, request, status, graph, conclusion from bisections where id = ?",
                (f"copy-{number}", number, "fake-c430600c"),
            )
            connection.execute(
                "insert into events (bisection, kind, body, note) select ?, kind, body, note from events "
                "where bisection = 'fake-c430600c' limit 3",
                (f"copy-{number}",),
            )


def test_all_bisections_are_what_they_were(state: Path) -> None:
    events = rows(state, "select * from events order by sequence")
    before = rows(state, "select id, created, request, status, conclusion from bisections order by id")
    store = SqlStore(open_state_file(state))
    assert rows(state, "select * from events order by sequence") == events
    assert (
        rows(state, "select id, created, request, status, conclusion from bisections order by id") == before
    )
    assert rows(state, "select value from about where key = 'schema'") == [(str(migration.SCHEMA_VERSION),)]
    ended = store.load("fake-c430600c")
    assert ended.conclusion is not None
    assert [len(store.load(s.id).graph.shas) for s in store.list()] == [25, 25, 31]
    assert len(store.records("fake-c430600c")) == 54
    assert len(store.decisions("fake-c430600c")) == 14
    (done,) = [s for s in store.list() if s.status == "done"]
    assert done.ending is Ending.CULPRIT
    assert done.culprits == (ended.graph.shas[ended.conclusion.findings[0].commits[0]],)
    assert (done.workload, done.good, done.bad) == ("fake", "good", "bad")


def test_a_graph_that_several_bisections_search_is_kept_once(state: Path) -> None:
    SqlStore(open_state_file(state))
    assert rows(state, "select count(*) from graphs") == [(2,)]


def test_records_go_on_behind_the_old_ones(state: Path) -> None:
    store = SqlStore(open_state_file(state))
    last = rows(state, "select max(sequence) from events")[0][0]
    assert store.append("fake-c430600c-2", Ran("boot-001", 1, {"m": 1.0}, 2.0, 3.0)) == last + 1
    with pytest.raises(RequestError):  # events still refer to bisections, not to a table that has gone
        store.append("nobody", Ran("boot-001", 1, {"m": 1.0}, 2.0, 3.0))


def test_the_time_of_the_last_record_is_when_an_old_bisection_changed_last(state: Path) -> None:
    store = SqlStore(open_state_file(state))
    assert next(s for s in store.list() if s.id == "fake-c430600c-2").changed == 1.8e9 + 12
    assert next(s for s in store.list() if s.id == "fake-cancelled").changed == 1.0


def test_a_process_that_is_killed_while_it_converts_loses_nothing(state: Path) -> None:
    make_large(state)
    before = rows(state, "select id, graph, conclusion from bisections order by id")
    kill = (
        "import os, signal, sys, pathlib\n"
        "from bisector.adapters.store.open_database import open_state_file\n"
        "def progress(text):\n"
        "    if ' 1,000 of 1,203' in text: os.kill(os.getpid(), signal.SIGKILL)\n"
        "open_state_file(pathlib.Path(sys.argv[1]), progress=progress)\n"
    )
    killed = subprocess.run([sys.executable, "-c", kill, str(state)], cwd=ROOT, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert rows(state, "select value from about where key = 'schema'") == [("2",)]
    assert rows(state, "select id, graph, conclusion from bisections order by id") == before
    store = SqlStore(open_state_file(state))
    assert len(store.list()) == 1203
    assert len(store.records("copy-7")) + len(store.decisions("copy-7")) == 3


def test_a_large_state_is_told_about_and_a_small_one_is_not(state: Path, tmp_path: Path) -> None:
    told: list[str] = []
    shutil.copy(state, tmp_path / "small.sqlite")
    SqlStore(open_state_file(tmp_path / "small.sqlite", progress=told.append))
    assert told == []
    make_large(state)
    SqlStore(open_state_file(state, progress=told.append))
    assert told[1] == "converting the state file, once: 500 of 1,203 bisections"


def test_a_damaged_bisection_does_not_keep_the_others(state: Path) -> None:
    with sqlite3.connect(state) as connection:
        connection.execute("update bisections set graph = x'00' where id = 'fake-c430600c'")
        connection.execute("update bisections set request = '{' where id = 'fake-cancelled'")
        connection.execute("update events set body = '[' where bisection = 'fake-c430600c-2'")
    store = SqlStore(open_state_file(state))
    assert [(s.id, s.workload, s.ending) for s in store.list()] == [
        ("fake-c430600c-2", "fake", None),
        ("fake-c430600c", "fake", None),
        ("fake-cancelled", None, None),
    ]
    with pytest.raises(InfrastructureError, match="commit graph") as error:
        store.load("fake-c430600c")
    assert error.value.cure


@pytest.mark.parametrize(("old", "word"), [(True, "upgraded"), (False, "made")])
def test_a_full_disk_is_told_with_what_it_was_needed_for(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bool, word: str
) -> None:
    def full(*_: object) -> NoReturn:
        raise OperationalError("CREATE TABLE", {}, sqlite3.OperationalError("database or disk is full"))

    path = state if old else tmp_path / "new.sqlite"
    with monkeypatch.context() as patched:
        patched.setattr(command, "upgrade", full)
        with pytest.raises(InfrastructureError, match=f"cannot be {word}: database or disk is full"):
            SqlStore(open_state_file(path)).list()
    assert len(SqlStore(open_state_file(path)).list()) == (3 if old else 0)


def test_a_file_that_an_earlier_version_writes_to_is_left_alone(state: Path) -> None:
    wiring = Wiring(Settings(state_dir=state.parent, cache_dir=state.parent))
    with lock(state.parent, "fake-c430600c-2"):
        with pytest.raises(RequestError, match="runs the bisection 'fake-c430600c-2'"):
            wiring.store  # noqa: B018
        assert rows(state, "select value from about where key = 'schema'") == [("2",)]
    assert len(wiring.store.list()) == 3
    assert not is_executed(state.parent, "running")


def test_a_converted_file_has_no_free_pages_and_gives_later_ones_back(state: Path) -> None:
    make_large(state)
    store = SqlStore(open_state_file(state))
    assert rows(state, "pragma freelist_count") == [(0,)]
    for number in range(600):
        store.remove(f"copy-{number}")
    assert store.give_back() > 1_000_000


def test_the_numbers_of_version_3_stay_and_new_ones_go_on_behind_them(tmp_path: Path) -> None:
    """state-3.sqlite: that of version 2, converted by a program of version 3, and three events more."""
    state = Path(shutil.copy(DATA / "state-3.sqlite", tmp_path / "perfbisect.sqlite"))
    columns = "sequence, bisection, kind, body, note"
    events = rows(state, f"select {columns} from events order by sequence")
    bisections = rows(
        state, "select id, created, changed, status, culprits, graph from bisections order by id"
    )
    store = SqlStore(open_state_file(state))
    assert rows(state, f"select {columns} from events order by sequence") == events
    assert (
        rows(state, "select id, created, changed, status, culprits, graph from bisections order by id")
        == bisections
    )
    assert [number for number, _ in store.records("fake-c430600c-2")][-2:] == [74, 76]
    ran = Ran("boot-001", 3, {"m": 1.0}, 2.0, 3.0)
    assert store.append("fake-c430600c-2", ran) == 77
    assert store.append("fake-cancelled", ran) == 76
    assert store.records("fake-c430600c-2", after=76) == [(77, ran)]
    assert rows(state, "select dense_after from bisections order by id") == [(68,), (76,), (75,)]


def test_bisections_of_version_4_have_priorities_and_tell_how_far_they_are(tmp_path: Path) -> None:
    """state-4.sqlite: state-3 converted by a program of version 4, and a queued bisection with four boots."""
    state = Path(shutil.copy(DATA / "state-4.sqlite", tmp_path / "perfbisect.sqlite"))
    tables = ("bisections", "events", "graphs", "testbeds", "leases", "executors", "reservations")
    columns = {
        table: ", ".join(row[1] for row in rows(state, f"pragma table_info({table})")) for table in tables
    }
    before = {table: rows(state, f"select {columns[table]} from {table} order by 1, 2") for table in tables}
    store = SqlStore(open_state_file(state))
    assert {t: rows(state, f"select {columns[t]} from {t} order by 1, 2") for t in tables} == before
    found = {summary.id: summary for summary in store.list()}
    assert len(found) == 4
    assert {(s.priority, s.owner, s.action) for s in found.values()} == {(NORMAL_PRIORITY, "", None)}
    queued = found["fake-queued"]
    assert (queued.testbeds, queued.progress.boots, queued.progress.live) == (("a", "b"), 2, ("b",))
    assert queued.progress.measured == ("a", "b")
    assert found["fake-c430600c"].testbeds == ("fake",)


def test_the_newest_revision_is_the_version_that_the_program_uses() -> None:
    from alembic.script import ScriptDirectory

    folder = Path(migration.__file__).parent / "migrations"
    assert ScriptDirectory(str(folder)).get_heads() == [str(migration.SCHEMA_VERSION)]
