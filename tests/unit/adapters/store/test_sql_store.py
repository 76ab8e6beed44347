"""What the SQLite store does beyond the contract: versions, other processes, a full or broken disk, size."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path

import pytest

from bisector.adapters.store.migration import SCHEMA_VERSION
from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.errors import InfrastructureError, RecordsUnusable
from bisector.model.records import Built, Ran
from bisector.model.stored_bisection import Stored
from bisector.simulation.histories import linear


def a_store(path: Path, commits: int = 4) -> SqlStore:
    store = SqlStore(open_state_file(path))
    store.create(Stored("one", 1.0, "{}", "new", linear(commits)))
    return store


def test_a_state_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    a_store(path)
    with sqlite3.connect(path) as connection:
        connection.execute("update about set value = ? where key = 'schema'", (str(SCHEMA_VERSION + 1),))
    with pytest.raises(InfrastructureError, match="newer perfbisect") as error:
        SqlStore(open_state_file(path))
    assert error.value.cure
    with sqlite3.connect(path) as connection:
        assert connection.execute("select value from about").fetchone() == (str(SCHEMA_VERSION + 1),)


@pytest.mark.parametrize("version", ["abc", "-3", "9" * 5000, ""])
def test_a_version_that_is_none_is_damage(tmp_path: Path, version: str) -> None:
    path = tmp_path / "x.sqlite"
    a_store(path)
    with sqlite3.connect(path) as connection:
        connection.execute("update about set value = ? where key = 'schema'", (version,))
    with pytest.raises(RecordsUnusable, match="is damaged: its tables have the version") as error:
        open_state_file(path)
    assert "backup" in error.value.cure


def test_an_emptied_file_is_damage_and_one_that_was_never_filled_is_not(tmp_path: Path) -> None:
    """A new and empty store in its place would say that there never was a bisection."""
    path = tmp_path / "x.sqlite"
    path.touch()
    assert a_store(path).list()
    (tmp_path / "bisections" / "one").mkdir(parents=True)
    path.write_bytes(b"")
    with pytest.raises(RecordsUnusable, match=r"x\.sqlite is damaged: it is empty") as error:
        open_state_file(path)
    assert "restore a backup" in error.value.cure
    assert not path.stat().st_size
    path.unlink()  # as the cure has it where there is no backup
    assert not SqlStore(open_state_file(path)).list()


@pytest.mark.parametrize("created", ["x", 1e300, -1e18, b"1"])
def test_a_time_that_is_none_is_damage(tmp_path: Path, created: object) -> None:
    """SQLite keeps whatever it is given; every list ended as a defect of perfbisect."""
    path = tmp_path / "x.sqlite"
    store = a_store(path)
    with sqlite3.connect(path) as connection:
        connection.execute("update bisections set created = ?", (created,))
    for read in (store.list, lambda: store.load("one")):
        with pytest.raises(InfrastructureError, match="a stored record cannot be read") as error:
            read()
        assert "'one' was made at no time" in error.value.details


def test_rows_that_refer_to_what_is_removed_are_damage(tmp_path: Path) -> None:
    """A truncated file has such: an index lacks rows that the table has."""
    path = tmp_path / "x.sqlite"
    store = a_store(path)
    with sqlite3.connect(path) as connection:
        connection.execute("create table more (id text references bisections (id))")
        connection.execute("insert into more values ('one')")
    with pytest.raises(RecordsUnusable, match="is damaged: 'one' cannot be removed"):
        store.remove("one")
    assert [one.id for one in store.list()] == ["one"]


def test_records_of_an_older_version_that_lacked_a_field_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    store = a_store(path)
    old = {"type": "Built", "commit": 1, "ok": True, "seconds": 2.0}
    with sqlite3.connect(path) as connection:
        connection.execute(
            "insert into events (sequence, bisection, kind, body, note) values (1, 'one', 'record', ?, '{}')",
            (json.dumps(old),),
        )
    assert [r for _, r in store.records("one")] == [Built(1, True, 2.0)]


def test_a_record_that_this_version_does_not_know_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    store = a_store(path)
    with sqlite3.connect(path) as connection:
        connection.execute(
            "insert into events (sequence, bisection, kind, body, note) values (1, 'one', 'record', ?, '{}')",
            (json.dumps({"type": "Teleported"}),),
        )
    with pytest.raises(InfrastructureError, match="Teleported"):
        store.records("one")


@pytest.mark.parametrize("body", ["{", "[]", "", "null"])
def test_a_damaged_record_is_told(tmp_path: Path, body: str) -> None:
    path = tmp_path / "x.sqlite"
    store = a_store(path)
    with sqlite3.connect(path) as connection:
        connection.execute(
            "insert into events (sequence, bisection, kind, body, note) values (1, 'one', 'record', ?, '{}')",
            (body,),
        )
        connection.execute("update bisections set conclusion = ?", (body,))
    for read in (store.records, store.load):
        with pytest.raises(InfrastructureError, match="cannot be read") as error:
            read("one")
        assert error.value.cure


def test_a_graph_is_kept_once_and_goes_with_the_last_bisection_of_it(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    store = a_store(path)
    store.create(Stored("two", 1.0, "{}", "new", linear(4)))
    store.create(Stored("three", 1.0, "{}", "new", linear(5)))

    def graphs() -> int:
        with sqlite3.connect(path) as connection:
            return int(connection.execute("select count(*) from graphs").fetchone()[0])

    assert graphs() == 2
    store.remove("one")
    assert graphs() == 2
    store.remove("two")
    assert graphs() == 1


def test_a_list_decodes_no_graph(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    store = a_store(path)
    with sqlite3.connect(path) as connection:
        connection.execute("update graphs set body = x'00'")
    assert [s.id for s in store.list()] == ["one"]
    assert store.status("one") == "new"


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    path.write_text("not a database at all" * 100)
    with pytest.raises(InfrastructureError, match=r"x\.sqlite"):
        SqlStore(open_state_file(path))


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match="state folder"):
        SqlStore(open_state_file(tmp_path / "file" / "x.sqlite"))


def test_what_one_process_writes_another_reads_while_it_writes(tmp_path: Path) -> None:
    writer = a_store(tmp_path / "x.sqlite")
    reader = SqlStore(open_state_file(tmp_path / "x.sqlite"))
    for index in range(5):
        writer.append("one", Ran("boot-001", index, {"real": 1.0}, 1.0, 1.0))
        assert len(reader.records("one")) == index + 1


def test_a_kernel_sized_graph_is_small_and_quick(tmp_path: Path) -> None:
    started = time.process_time()
    store = a_store(tmp_path / "x.sqlite", commits=110_000)
    assert len(store.load("one").graph.shas) == 110_001
    assert time.process_time() - started < 10
    store.append("one", Built(1, True, 1.0))
    assert (tmp_path / "x.sqlite").stat().st_size < 12e6
    started = time.process_time()
    for _ in range(50):
        store.status("one")
    assert time.process_time() - started < 1
