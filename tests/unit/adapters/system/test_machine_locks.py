"""Locks that all perfbisects of a machine share: who holds one, whose turn it is, and how they end."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bisector.adapters.system import machine_locks
from bisector.adapters.system.machine_locks import MachineLock, locked
from bisector.errors import InfrastructureError, Interrupted
from tests.support.waiting import until

HOLDER = """
import sys
from pathlib import Path
from bisector.adapters.system.machine_locks import MachineLock, locked
folder, name, user, kind, forever = sys.argv[1:]
lock = MachineLock(Path(folder), (name,), "it", user)
while True:
    with getattr(lock, kind)(print):
        print("held", flush=True)
        if forever == "once":
            sys.stdin.readline()
            break
"""


def lock(folder: Path, *names: str, stop: threading.Event | None = None) -> MachineLock:
    return MachineLock(folder, names or ("bed",), "the bed", "the test", stop.is_set if stop else None)


@contextmanager
def holder(
    folder: Path, name: str = "bed", user: str = "process 7", kind: str = "exclusive", forever: str = "once"
) -> Iterator[subprocess.Popen[str]]:
    """Let another process hold a lock until it reads a line, or take it again and again."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), name, user, kind, forever],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(autouse=True)
def told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_locks, "_SILENT_SECONDS", 0.0)


def test_a_wait_is_told_where_whoever_came_last_has_gone(tmp_path: Path) -> None:
    """Another process shared it, this one did so after it and let it go: the file named this process."""
    told: list[str] = []
    stop = threading.Event()
    with holder(tmp_path, kind="shared"):
        with lock(tmp_path).shared(told.append):
            pass

        def tell(text: str) -> None:
            told.append(text)
            stop.set()

        threading.Timer(5, stop.set).start()
        with pytest.raises(Interrupted), lock(tmp_path, stop=stop).exclusive(tell):
            pass
    assert told == ["waiting for the bed: another process has it"]


def test_another_process_waits_is_told_who_has_it_and_gets_it(tmp_path: Path) -> None:
    told: list[str] = []
    got = threading.Event()

    def wait() -> None:
        with lock(tmp_path).exclusive(told.append):
            got.set()

    with holder(tmp_path, user="process 7 (bisection 'x', state folder /s)") as process:
        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        until(lambda: bool(told), 20)
        assert told[0].startswith("waiting for the bed: process 7 (bisection 'x', state folder /s), since 20")
        assert told[0].endswith(" UTC has it")
        assert not got.is_set()
        process.communicate("go on\n", timeout=20)
        thread.join(20)
        assert got.is_set()
    assert len(told) == 1


def test_a_lock_ends_with_the_process_that_holds_it_however_it_dies(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        process.kill()
        with lock(tmp_path).exclusive(print):
            pass


def test_the_programs_of_a_holder_do_not_keep_it(tmp_path: Path) -> None:
    with lock(tmp_path).exclusive(print):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
        forked = os.fork()  # without exec it has all our files
        if forked == 0:
            time.sleep(60)
            os._exit(0)
    try:
        stop = threading.Event()
        stop.set()
        with lock(tmp_path, stop=stop).exclusive(print):
            pass
    finally:
        child.kill()
        child.wait()
        os.kill(forked, 9)
        os.waitpid(forked, 0)


def test_who_takes_it_again_and_again_lets_others_in(tmp_path: Path) -> None:
    """Without turns a run would follow the other within milliseconds, and a compile wait for all of them."""
    with holder(tmp_path, forever="again"):
        for _ in range(3):
            with lock(tmp_path).exclusive(print):
                pass
        with lock(tmp_path).shared(print):
            pass


def test_those_who_share_do_not_wait_for_each_other_but_for_one_who_wants_it_alone(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    with holder(tmp_path, kind="shared"):
        with lock(tmp_path, stop=stop).shared(print):
            pass
        with pytest.raises(Interrupted, match="the bed"), lock(tmp_path, stop=stop).exclusive(print):
            pass
    with (
        lock(tmp_path).exclusive(print),
        pytest.raises(Interrupted),
        lock(tmp_path, stop=stop).shared(print),
    ):
        pass


def test_one_who_waits_to_be_alone_goes_before_those_who_come_later_to_share(tmp_path: Path) -> None:
    order: list[str] = []

    def alone() -> None:
        with lock(tmp_path).exclusive(print):
            order.append("alone")

    def together() -> None:
        with lock(tmp_path).shared(print):
            order.append("together")

    with lock(tmp_path).shared(print):
        first = threading.Thread(target=alone, daemon=True)
        first.start()
        turn = tmp_path / "bed.turn"
        until(lambda: not _is_free(turn), 20)
        later = threading.Thread(target=together, daemon=True)
        later.start()
        later.join(0.3)
        assert order == []
    first.join(20)
    later.join(20)
    assert order == ["alone", "together"]


def _is_free(path: Path) -> bool:
    return subprocess.run(["flock", "--nonblock", str(path), "true"], check=False).returncode == 0


def test_locks_that_are_taken_together_are_taken_in_one_order(tmp_path: Path) -> None:
    """Two that name the same two the other way round would each hold one and wait for the other's."""
    done: list[int] = []

    def work(*names: str) -> None:
        for _ in range(20):
            with lock(tmp_path, *names).exclusive(print):
                done.append(1)

    orders = (("a", "b"), ("b", "a", "b"))
    threads = [threading.Thread(target=work, args=names, daemon=True) for names in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(done) == 40


def test_what_the_process_does_itself_is_not_told(tmp_path: Path) -> None:
    told: list[str] = []
    stop = threading.Event()
    with lock(tmp_path).exclusive(print):
        thread = threading.Thread(target=lambda: _try(lock(tmp_path, stop=stop), told), daemon=True)
        thread.start()
        thread.join(0.3)
        stop.set()
        thread.join(20)
    assert told == []


def _try(one: MachineLock, told: list[str]) -> None:
    with pytest.raises(Interrupted), one.exclusive(told.append):
        pass


def test_a_file_that_a_cleaner_removed_does_not_let_two_in(tmp_path: Path) -> None:
    order: list[str] = []

    def wait(name: str) -> None:
        with lock(tmp_path).exclusive(print):
            order.append(f"{name} in")
            time.sleep(0.2)
            order.append(f"{name} out")

    with lock(tmp_path).exclusive(print):
        first = threading.Thread(target=wait, args=("first",), daemon=True)
        first.start()
        until(lambda: not _is_free(tmp_path / "bed.turn"), 20)
        for path in tmp_path.iterdir():
            path.unlink()
    second = threading.Thread(target=wait, args=("second",), daemon=True)
    second.start()
    first.join(20)
    second.join(20)
    assert [word.split()[1] for word in order] == ["in", "out", "in", "out"]


def test_what_a_file_says_of_its_holder_is_foreign_text(tmp_path: Path) -> None:
    told: list[str] = []
    with holder(tmp_path, user="\x1b]0;title\x07 me") as process:
        (tmp_path / "bed").write_bytes(b"x\n\x1b[31mred\x9b\xff" + b"long" * 1000)
        thread = threading.Thread(target=_wait_once, args=(tmp_path, told), daemon=True)
        thread.start()
        until(lambda: bool(told), 20)
        process.kill()
        thread.join(20)
    assert told[0].isprintable()
    assert len(told[0]) < 1100


def _wait_once(folder: Path, told: list[str]) -> None:
    with lock(folder).exclusive(told.append):
        pass


def test_all_users_of_the_machine_may_use_a_folder_that_one_made(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with lock(tmp_path / "new" / "locks").exclusive(print):
            pass
    finally:
        os.umask(before)
    folder = tmp_path / "new" / "locks"
    assert folder.stat().st_mode & 0o7777 == 0o1777
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o666}


def test_a_folder_that_cannot_be_used_is_told_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(InfrastructureError, match=r"cannot lock .*bed") as error,
        lock(tmp_path / "file").exclusive(print),
    ):
        pass
    assert "PERFBISECT_LOCK_DIR" in error.value.cure


def test_a_link_in_the_place_of_a_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "locks" / "bed").symlink_to(tmp_path / "mine")
    with pytest.raises(InfrastructureError), lock(tmp_path / "locks").exclusive(print):
        pass
    assert (tmp_path / "mine").read_text() == "precious"


def test_an_error_of_the_block_is_not_taken_for_one_of_the_lock(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), lock(tmp_path).exclusive(print):
        (tmp_path / "none").read_text()


def test_an_open_file_is_locked_for_every_other_opening_of_it(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as ours, (tmp_path / "file").open() as theirs:
        with locked(ours.fileno()):
            assert not is_free(theirs.fileno())
        assert is_free(theirs.fileno())


def is_free(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(handle, fcntl.LOCK_UN)
    return True
