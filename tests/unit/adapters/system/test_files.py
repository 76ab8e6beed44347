"""Files are written whole or not at all; a lock lasts as long as the process that holds it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bisector.adapters.system import files
from bisector.adapters.system.files import exclusive_lock, replacing, write_atomically, write_file
from bisector.errors import InfrastructureError, Interrupted
from tests.support.waiting import until


def test_text_and_bytes_are_written_with_their_folders_and_permissions(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    write_atomically(path, "grüße\n")
    assert path.read_bytes() == "grüße\n".encode()
    write_atomically(path, b"\0\xff", mode=0o600)
    assert path.read_bytes() == b"\0\xff"
    assert path.stat().st_mode & 0o777 == 0o600
    write_file(tmp_path / "other" / "file", b"x")
    assert (tmp_path / "other" / "file").read_bytes() == b"x"
    assert os.listdir(path.parent) == ["file"]


CRASH = """
import os, signal, sys
from pathlib import Path
from bisector.adapters.system import files
setattr(os, sys.argv[2], lambda *_: os.kill(os.getpid(), signal.SIGKILL))
files.write_atomically(Path(sys.argv[1]), "new, " * 100_000)
"""


@pytest.mark.parametrize("moment", ["open", "fsync", "replace"])
def test_a_crash_in_the_middle_leaves_the_old_content(tmp_path: Path, moment: str) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    child = subprocess.run([sys.executable, "-c", CRASH, str(path), moment], check=False)
    assert child.returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    write_atomically(path, "newer")  # what the crash left is not in the way
    assert path.read_text() == "newer"


@pytest.fixture
def full_disk() -> Iterator[Path]:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    yield Path("/dev/full")


def test_a_full_disk_leaves_the_old_content_and_says_what_to_do(tmp_path: Path, full_disk: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    no_space = pytest.raises(InfrastructureError, match=r"cannot write .*: No space left on device")
    with no_space as error, replacing(path) as partial:
        partial.symlink_to(full_disk)
        partial.write_text("new")
    assert "free some space" in error.value.cure
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_what_may_not_be_written_wants_its_owner_and_no_space(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError) as error, replacing(tmp_path / "file"):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))
    assert error.value.cure.startswith("have its owner give the right to write there, or set another folder")


def test_an_error_of_the_block_passes_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="of the block"), replacing(tmp_path / "file") as partial:
        partial.write_text("half")
        raise ValueError("of the block")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("write", [write_file, write_atomically])
def test_a_folder_that_is_a_file_is_told(tmp_path: Path, write: object) -> None:
    (tmp_path / "folder").write_text("a file")
    with pytest.raises(InfrastructureError, match="cannot write") as error:
        write(tmp_path / "folder" / "file", b"x")  # type: ignore[operator]
    assert error.value.cure.startswith("move away the file"), "it wanted some space to be freed"


def test_a_taken_lock_is_waited_for_and_the_wait_can_be_stopped_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "lock"
    waited: list[str] = []

    def refuse() -> None:
        raise InfrastructureError("in use")

    with exclusive_lock(path, lambda: waited.append("first")):
        with (
            pytest.raises(Interrupted, match="another process held"),
            exclusive_lock(path, lambda: waited.append("second"), lambda: True),
        ):
            pass
        with pytest.raises(InfrastructureError, match="in use"), exclusive_lock(path, refuse):
            pass
        done = threading.Event()

        def later() -> None:
            with exclusive_lock(path, lambda: waited.append("third")):
                done.set()

        thread = threading.Thread(target=later)
        thread.start()
        assert not done.wait(0.5)
    thread.join(60)
    assert done.is_set()
    assert waited == ["second", "third"]


def test_a_lock_may_be_left_by_another_thread_than_took_it(tmp_path: Path) -> None:
    held = exclusive_lock(tmp_path / "lock")
    held.__enter__()
    thread = threading.Thread(target=held.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    with exclusive_lock(tmp_path / "lock", lambda: pytest.fail("still held")):
        pass


HOLD = """
import subprocess, sys, time
from pathlib import Path
from bisector.adapters.system.files import exclusive_lock
with exclusive_lock(Path(sys.argv[1])):
    child = subprocess.Popen(["sleep", "60"])
    Path(sys.argv[2]).write_text(f"{child.pid}\\n")
    time.sleep(60)
"""


def test_a_lock_ends_with_its_process_and_programs_do_not_inherit_it(tmp_path: Path) -> None:
    lock, note = tmp_path / "lock", tmp_path / "note"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(lock), str(note)])
    try:
        until(lambda: note.exists() and note.read_text().endswith("\n"), 30)
        with pytest.raises(Interrupted), exclusive_lock(lock, stop=lambda: True):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with exclusive_lock(lock, lambda: pytest.fail("still held")):
            assert Path(f"/proc/{note.read_text().strip()}").exists()
    finally:
        holder.kill()
        holder.wait()
        os.kill(int(note.read_text()), signal.SIGKILL)


def test_a_lock_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(InfrastructureError, match="cannot lock"), exclusive_lock(tmp_path / "lock"):
        pass


def test_a_folder_is_published_whole_and_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partial, final = tmp_path / "partial", tmp_path / "final"
    (partial / "inner").mkdir(parents=True)
    (partial / "inner" / "file").write_text("x")
    (partial / "link").symlink_to("/nowhere")
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    files.publish_folder(partial, final)
    assert (final / "inner" / "file").read_text() == "x"
    assert not partial.exists()
    content = {str(partial / name) for name in ("inner", "inner/file")} | {str(partial)}
    assert set(synced[:-1]) == content, "before it has its name"
    assert synced[-1] == str(tmp_path), "the name itself"
