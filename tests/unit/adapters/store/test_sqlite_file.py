"""Transactions of a SQLite file happen whole or not at all, in several threads and processes."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bisector.adapters.store import sqlite_file
from bisector.adapters.store.database import Constrained
from bisector.adapters.store.sqlite_file import SqliteFile
from bisector.errors import InfrastructureError, RecordsFull, RecordsUnusable
from tests.support.small_disk import fill, mounted


@pytest.fixture
def file(tmp_path: Path) -> SqliteFile:
    file = SqliteFile(tmp_path / "x.sqlite")
    file.execute("CREATE TABLE parents (id TEXT NOT NULL PRIMARY KEY)")
    file.execute("CREATE TABLE children (parent TEXT NOT NULL REFERENCES parents (id))")
    return file


def count(file: SqliteFile) -> int:
    return int(file.execute("SELECT count(*) AS n FROM parents")[0]["n"])


def test_what_fails_in_a_transaction_undoes_all_of_it(file: SqliteFile) -> None:
    def interrupted() -> None:
        file.execute("INSERT INTO parents VALUES ('a')")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        file.transact(interrupted)
    assert count(file) == 0
    file.transact(lambda: file.execute("INSERT INTO parents VALUES ('a')"))
    assert count(file) == 1


def test_a_row_without_what_it_refers_to_is_refused(file: SqliteFile) -> None:
    with pytest.raises(Constrained):
        file.execute("INSERT INTO children VALUES ('nobody')")
    file.execute("INSERT INTO parents VALUES ('a')")
    file.execute("INSERT INTO children VALUES ('a')")


def test_a_transaction_of_one_thread_is_not_another_ones(file: SqliteFile) -> None:
    inside = threading.Event()

    def other() -> None:
        inside.wait(10)
        file.execute("INSERT INTO parents VALUES ('other')")

    thread = threading.Thread(target=other)
    thread.start()

    def undone() -> None:
        inside.set()
        thread.join(0.2)
        file.execute("INSERT INTO parents VALUES ('a')")
        raise ValueError("undo")

    with pytest.raises(ValueError, match="undo"):
        file.transact(undone)
    thread.join(10)
    assert [row["id"] for row in file.execute("SELECT id FROM parents")] == ["other"]


def test_a_file_that_another_process_locks_is_told(file: SqliteFile, tmp_path: Path) -> None:
    file._use().execute("PRAGMA busy_timeout=10")
    other = sqlite3.connect(tmp_path / "x.sqlite")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(InfrastructureError, match=r"x\.sqlite cannot be used: database is locked") as error:
        file.execute("INSERT INTO parents VALUES ('a')")
    assert error.value.cure
    other.rollback()
    file.execute("INSERT INTO parents VALUES ('a')")


def test_who_reads_does_not_wait_for_who_writes(
    file: SqliteFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "_WAIT_SECONDS", 0.01)
    file.execute("INSERT INTO parents VALUES ('a')")
    other = sqlite3.connect(tmp_path / "x.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO parents VALUES ('b')")
    assert count(SqliteFile(tmp_path / "x.sqlite")) == 1
    other.execute("ROLLBACK")


def test_a_file_gives_its_space_back_however_often_it_was_opened_before_its_first_table(
    tmp_path: Path,
) -> None:
    for _ in range(2):
        incremental = SqliteFile(tmp_path / "new.sqlite").execute("PRAGMA auto_vacuum")[0]["auto_vacuum"]
        assert incremental == 2


def test_removed_rows_give_their_space_back(file: SqliteFile, tmp_path: Path) -> None:
    for number in range(200):
        file.execute("INSERT INTO parents VALUES (:id)", id=f"{number}" + "x" * 5000)
    file.execute("DELETE FROM parents")
    assert file.give_back() > 800_000
    assert (tmp_path / "x.sqlite").stat().st_size < 100_000


@pytest.fixture
def read_only(file: SqliteFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A closed file in a folder that may not be written; root, who runs tests, may write anywhere."""
    file.execute("INSERT INTO parents VALUES ('a')")
    file._use().close()
    granted = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path and granted(path, mode))
    return tmp_path / "x.sqlite"


def test_a_file_in_a_folder_that_may_not_be_written_is_read(read_only: Path) -> None:
    found = SqliteFile(read_only)
    assert count(found) == 1
    assert [path.name for path in read_only.parent.iterdir()] == ["x.sqlite"], "no log was made beside it"
    with pytest.raises(InfrastructureError, match="attempt to write a readonly database") as error:
        found.execute("INSERT INTO parents VALUES ('b')")
    assert error.value.cure.startswith(f"{read_only.parent} may not be written: have its owner")
    with pytest.raises(InfrastructureError, match="attempt to write a readonly database"):
        found.transact(lambda: found.execute("INSERT INTO parents VALUES ('b')"))


def test_what_somebody_writes_there_is_not_missed(read_only: Path) -> None:
    writing = sqlite3.connect(read_only)
    writing.execute("INSERT INTO parents VALUES ('b')")
    writing.commit()
    assert read_only.with_name("x.sqlite-wal").stat().st_size
    assert count(SqliteFile(read_only)) == 2, "it is in the log alone"
    writing.close()


def test_a_name_that_looks_like_an_address_is_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a b?mode=memory#%41").mkdir()
    SqliteFile(Path("a b?mode=memory#%41/x.sqlite")).execute("CREATE TABLE parents (id TEXT)")
    assert count(SqliteFile(tmp_path / "a b?mode=memory#%41" / "x.sqlite")) == 0


def test_a_damaged_file_is_told_with_how_a_backup_is_restored(file: SqliteFile, tmp_path: Path) -> None:
    file.execute("INSERT INTO parents VALUES (:id)", id="x" * 100_000)
    file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = (tmp_path / "x.sqlite").read_bytes()
    damaged = {"cut": whole[:12_000], "noise": b"\xa5" * 20_000, "middle": whole[:100] + b"\xa5" * 20_000}
    for name, content in damaged.items():
        path = tmp_path / f"{name}.sqlite"
        path.write_bytes(content)
        with pytest.raises(RecordsUnusable, match=rf"{name}\.sqlite is damaged: ") as error:
            SqliteFile(path).execute("SELECT id FROM parents")
        cure = error.value.cure
        assert f"restore a backup: while nothing runs, put it in place of {path}" in cure
        assert f"{name}.sqlite-wal and {name}.sqlite-shm" in cure
        assert path.read_bytes() == content, "it may be repaired"


def test_a_folder_in_place_of_the_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").mkdir()
    with pytest.raises(RecordsUnusable, match=r"x\.sqlite cannot be used: it is a folder") as error:
        SqliteFile(tmp_path / "x.sqlite")
    assert error.value.cure.startswith("move it away; restore a backup")


def test_what_a_backup_does_not_mend_is_not_said_to(tmp_path: Path) -> None:
    with pytest.raises(RecordsUnusable, match="unable to open") as error:
        SqliteFile(tmp_path / "nowhere" / "x.sqlite")
    assert "permissions" in error.value.cure and "backup" not in error.value.cure


def test_damage_is_known_by_its_kind_wherever_it_is(file: SqliteFile) -> None:
    error = sqlite3.DatabaseError("database disk image is malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT_INDEX
    with pytest.raises(RecordsUnusable, match="is damaged"), file._reporting():
        raise error


def test_a_full_disk_is_told_as_such(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "x.sqlite")
    file.execute("CREATE TABLE t (x BLOB)")
    file.execute("PRAGMA max_page_count=3")
    with pytest.raises(RecordsFull, match="full") as error:
        file.execute("INSERT INTO t VALUES (zeroblob(100000))")
    assert "perfbisect prune" in error.value.cure


LEAVES_ITS_LOG = """
import os, sys
from pathlib import Path
from bisector.adapters.store.sqlite_file import SqliteFile
file = SqliteFile(Path(sys.argv[1]))
file.execute("INSERT INTO t VALUES ('by a process that was killed')")
os._exit(9)
"""


@pytest.fixture
def on_a_full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file with a table that nobody has open, and no room for another byte beside it."""
    with mounted(tmp_path / "small", 1) as folder:
        path = folder / "x.sqlite"
        with closing(SqliteFile(path)._use()) as connection:
            connection.execute("CREATE TABLE t (x TEXT)")
        fill(folder)
        yield path


def test_a_file_is_read_where_its_disk_is_full(on_a_full_disk: Path) -> None:
    """SQLite has an index of its log beside the file, of 32 KiB: even `list` and `prune` failed without."""
    file = SqliteFile(on_a_full_disk)
    assert file.execute("SELECT x FROM t") == []
    with pytest.raises(RecordsFull, match="full"):
        file.execute("INSERT INTO t VALUES ('a')")
    with pytest.raises(RecordsFull, match="full"):
        file.transact(lambda: file.execute("INSERT INTO t VALUES ('a')"))
    assert file.execute("SELECT x FROM t") == []


def test_whoever_reads_on_a_full_disk_keeps_nobody_out_for_longer(on_a_full_disk: Path) -> None:
    one, two = SqliteFile(on_a_full_disk), SqliteFile(on_a_full_disk)
    began = time.monotonic()
    for file in (one, two, one):
        file.transact(lambda file=file: file.execute("SELECT x FROM t"))  # type: ignore[misc]
        assert file.execute("SELECT x FROM t") == []
    on_a_full_disk.with_name("filler").unlink()
    one.execute("INSERT INTO t VALUES ('a')")
    assert [row["x"] for row in two.execute("SELECT x FROM t")] == ["a"]
    two.transact(lambda: two.execute("DELETE FROM t"))
    assert one.execute("SELECT x FROM t") == []
    assert time.monotonic() - began < sqlite_file._WAIT_SECONDS / 2


def test_what_a_killed_process_wrote_is_read_on_a_full_disk(on_a_full_disk: Path) -> None:
    filler = on_a_full_disk.with_name("filler")
    filler.unlink()
    subprocess.run([sys.executable, "-c", LEAVES_ITS_LOG, on_a_full_disk], check=False)
    assert on_a_full_disk.with_name("x.sqlite-wal").stat().st_size > 0
    on_a_full_disk.with_name("x.sqlite-shm").unlink()
    fill(on_a_full_disk.parent)
    rows = SqliteFile(on_a_full_disk).execute("SELECT x FROM t")
    assert [row["x"] for row in rows] == ["by a process that was killed"]
