"""Other users look into nothing that perfbisect keeps, and no folder of the user's is closed for that."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from bisector.adapters.store.open_database import connect, open_state_file
from bisector.adapters.store.state_folder import close_database_file, prepare_state_folder
from bisector.engine.state_lock import lock
from bisector.errors import InfrastructureError, RequestError

PRIVATE = ("bisections", "health", "lab-checks")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.fixture
def usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of the state folder where nobody names another."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "perfbisect"


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder of the user's that others may look into, with a file of another program."""
    folder = tmp_path / "srv"
    folder.mkdir(mode=0o755)
    (folder / "index.html").touch()
    return folder


def test_a_folder_that_is_made_is_closed(tmp_path: Path, usual: Path) -> None:
    for folder in (tmp_path / "a" / "new", usual):
        open_state_file(folder / "perfbisect.sqlite")
        assert mode(folder) == 0o700
        assert sorted(os.listdir(folder)) == [
            "perfbisect.sqlite",
            "perfbisect.sqlite-shm",
            "perfbisect.sqlite-wal",
        ]


def test_the_usual_folder_is_closed_even_if_it_was_open(
    usual: Path, caplog: pytest.LogCaptureFixture
) -> None:
    usual.mkdir(parents=True)
    (usual / "import-12345678").mkdir()
    for folder in (usual, usual / "bisections"):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
    for _ in range(2):
        prepare_state_folder(usual)
        assert mode(usual) == 0o700
    assert [record.getMessage() for record in caplog.records] == [
        f"other users could look into {usual}; it is closed now"
    ]


def test_the_usual_folder_stays_open_with_foreign_files_or_a_sticky_bit(usual: Path) -> None:
    usual.mkdir(parents=True)
    usual.chmod(0o1755)
    prepare_state_folder(usual)
    assert mode(usual) == 0o1755
    usual.chmod(0o755)
    (usual / "notes.txt").touch()
    prepare_state_folder(usual)
    assert mode(usual) == 0o755
    assert all(mode(usual / name) == 0o700 for name in PRIVATE)


def test_another_folder_keeps_its_mode_and_what_is_private_in_it_is_closed(shared: Path) -> None:
    (shared / "perfbisect.sqlite").touch(mode=0o644)
    open_state_file(shared / "perfbisect.sqlite")
    assert mode(shared) == 0o755
    assert all(mode(shared / name) == 0o700 for name in PRIVATE)
    for name in ("perfbisect.sqlite", "perfbisect.sqlite-wal", "perfbisect.sqlite-shm"):
        assert mode(shared / name) == 0o600
    with lock(shared, "work"):
        assert mode(shared / "executor.lock") == 0o600, "who can read it could hold it"


def test_an_open_folder_within_is_closed_where_nothing_is_foreign_else_refused(
    tmp_path: Path, shared: Path
) -> None:
    own = tmp_path / "own"
    for folder in (own, own / "health", shared / "health"):
        folder.mkdir()
        folder.chmod(0o755)
    prepare_state_folder(own)
    assert (mode(own), mode(own / "health")) == (0o755, 0o700)
    with pytest.raises(RequestError, match=rf"other users can look into {shared / 'health'}") as caught:
        prepare_state_folder(shared)
    assert f"chmod 700 {shared / 'health'}" in caught.value.cure
    assert (mode(shared), mode(shared / "health")) == (0o755, 0o755)


@pytest.mark.parametrize("given", [0o1777, 0o777, 0o757])
def test_where_every_user_can_write_nothing_is_kept(shared: Path, given: int) -> None:
    shared.chmod(given)
    for attempt in (connect, open_state_file):
        with pytest.raises(
            RequestError, match=rf"every user of this machine can write to {shared}"
        ) as caught:
            attempt(shared / "perfbisect.sqlite")
        assert "PERFBISECT_STATE_DIR" in caught.value.cure
    assert mode(shared) == given
    assert os.listdir(shared) == ["index.html"]


def test_a_folder_of_another_user_is_left_as_it_is(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    prepare_state_folder(shared)
    assert (mode(shared), os.listdir(shared)) == (0o755, ["index.html"])


def test_a_database_file_elsewhere_is_closed_from_its_beginning(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = shared / "x.sqlite", list[int]()
    monkeypatch.setattr(
        "bisector.adapters.store.open_database.SqliteFile", lambda where: seen.append(mode(where))
    )
    connect(path)
    assert seen == [0o600], "before SQLite puts anything in it, or beside it"
    assert mode(shared) == 0o755
    assert sorted(os.listdir(shared)) == ["index.html", "x.sqlite"], "it is no state folder"
    beside = [shared / f"x.sqlite{end}" for end in ("", "-wal", "-shm", "-journal")]
    for one in beside:
        one.touch()
        one.chmod(0o644)
    connect(path)
    assert {mode(one) for one in beside} == {0o600}


def test_a_folder_in_place_of_the_file_keeps_its_mode(shared: Path) -> None:
    (shared / "x.sqlite").mkdir()
    (shared / "x.sqlite").chmod(0o755)
    with pytest.raises(InfrastructureError):
        connect(shared / "x.sqlite")
    assert mode(shared / "x.sqlite") == 0o755


def test_a_file_that_is_used_already_keeps_its_locks_and_its_time(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    ours = sqlite3.connect(path, isolation_level=None)
    ours.execute("PRAGMA journal_mode=DELETE")
    ours.execute("BEGIN EXCLUSIVE")
    os.utime(path, (5, 5))
    close_database_file(path)
    assert path.stat().st_mtime == 5
    other = (
        "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('SELECT 1 FROM sqlite_master')"
    )
    done = subprocess.run([sys.executable, "-c", other, path], capture_output=True, text=True, check=False)
    assert "database is locked" in done.stderr
