"""The lock of a state folder: held once, seen by others, free again when its process is gone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import Timeout

from bisector.engine import state_lock
from bisector.engine.state_lock import Busy, find_holder, is_executed, lock
from bisector.errors import InfrastructureError
from tests.support.small_disk import mounted


def runner(folder: Path) -> str | None:
    """Return what its holder does, if it has one."""
    holder = find_holder(folder)
    return holder.doing if holder is not None else None


HOLD = """
import sys, time
from pathlib import Path
from bisector.engine.state_lock import lock
with lock(Path(sys.argv[1]), "one"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_lock, "_PROBE_SECONDS", 0.1)


def test_nobody_runs_where_nothing_is(tmp_path: Path) -> None:
    assert runner(tmp_path / "state") is None
    assert not (tmp_path / "state").exists()


def test_others_see_who_holds_it_and_are_refused(tmp_path: Path) -> None:
    started = time.monotonic()
    with lock(tmp_path, "one"):
        assert runner(tmp_path) == "one"
        with pytest.raises(Busy, match="runs the bisection 'one'") as caught, lock(tmp_path, "two"):
            pass
        assert caught.value.holder is not None
        assert caught.value.holder.doing == "one"
        assert "PERFBISECT_STATE_DIR" in caught.value.cure
        assert runner(tmp_path) == "one", "who was refused has written nothing"
    assert time.monotonic() - started < 15, "it is told soon, though it is tried again for a moment"
    assert runner(tmp_path) is None
    with lock(tmp_path, "two"):
        assert runner(tmp_path) == "two"


@pytest.mark.parametrize("error", [RuntimeError("x"), Timeout("another lock")])
def test_it_is_free_again_after_an_error_which_stays_what_it_is(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(type(error)), lock(tmp_path, "one"):
        raise error
    assert runner(tmp_path) is None


def test_a_killed_process_holds_it_no_longer_whatever_it_left(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        assert runner(tmp_path) == "one"
        holder.kill()
        holder.wait()
        assert runner(tmp_path) is None
        with lock(tmp_path, "two"):
            assert runner(tmp_path) == "two"


def test_a_lock_that_a_killed_process_left_is_free_on_a_disk_that_cannot_be_written(tmp_path: Path) -> None:
    """Status, report and export of such a state folder failed."""
    with mounted(tmp_path / "disk", 1) as folder:
        with subprocess.Popen(["true"]) as killed:
            (folder / "executor.lock").touch()
        (folder / "executor.holder").write_text(f"{killed.pid} one\n")
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        assert runner(folder) is None
        with pytest.raises(InfrastructureError, match=r"cannot lock .*: Read-only file system"):
            lock(folder, "two").__enter__()


def test_who_may_not_read_the_lock_asks_whether_its_holder_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command with sudo leaves a file of root's in a user's folder."""

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "executor.lock").touch()
    (tmp_path / "executor.holder").write_text(f"{os.getpid()} one\n")
    monkeypatch.setattr(os, "open", refuse)
    assert state_lock.find_holder(tmp_path) is not None
    monkeypatch.undo()
    with subprocess.Popen(["true"]) as ended:
        pass
    (tmp_path / "executor.holder").write_text(f"{ended.pid} one\n")
    monkeypatch.setattr(os, "open", refuse)
    assert state_lock.find_holder(tmp_path) is None


def test_a_holder_that_has_not_signed_yet_is_unknown(tmp_path: Path) -> None:
    with lock(tmp_path, "one"):
        (tmp_path / "executor.holder").unlink()
        assert runner(tmp_path) is None
        with pytest.raises(Busy, match="another perfbisect works in this"), lock(tmp_path, "two"):
            pass


def test_only_who_executes_bisections_keeps_one_running(tmp_path: Path) -> None:
    with lock(tmp_path, "one"):
        assert is_executed(tmp_path, "running")
        assert not is_executed(tmp_path, "interrupted")
    assert not is_executed(tmp_path, "running"), "its process was killed"
    with lock(tmp_path, "run of pipe-test on guest"):
        assert not is_executed(tmp_path, "running")
        with pytest.raises(Busy, match="does a run of pipe-test on guest in this state folder") as caught:
            lock(tmp_path, "two").__enter__()
        assert "status" not in caught.value.cure, "that shows bisections"
