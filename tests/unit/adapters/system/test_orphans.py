"""What a killed perfbisect left is ended; what belongs to one that lives, or may live, is spared."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bisector.adapters.system import orphans, processes
from bisector.adapters.system.command import stream_command
from bisector.adapters.system.processes import identity
from bisector.errors import InfrastructureError
from tests.support.waiting import until

STREAM = "from bisector.adapters.system.command import stream_command; stream_command(['sleep', '60'], print)"


def marked(owner: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        ["sleep", "60"], env={**os.environ, orphans.MARK: f"{owner}.{os.urandom(8).hex()}"}
    )
    until(lambda: Path(f"/proc/{process.pid}/cmdline").read_bytes().startswith(b"sleep"), 20)
    return process


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def test_what_a_killed_process_left_is_ended_and_what_lives_is_spared() -> None:
    dead, alive = (subprocess.Popen([sys.executable, "-c", STREAM]) for _ in range(2))
    left, spared = (f"{identity(process.pid)}." for process in (dead, alive))
    try:
        until(lambda: bool(orphans.find_marked(left) and orphans.find_marked(spared)), 30)
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert orphans.find_marked(left)
        assert orphans.end_orphans() >= 1
        assert not orphans.find_marked(left)
        assert orphans.find_marked(spared)
    finally:
        for pid in orphans.find_marked(spared):
            processes.kill(pid)
        alive.kill()
        alive.wait()


def test_an_owner_of_another_pid_namespace_may_live(owner: subprocess.Popen[bytes]) -> None:
    pid, start, boot, _ = identity(owner.pid).split("-")
    child = marked(f"{pid}-{int(start) + 1}-{boot}-1")  # its number means somebody else here
    try:
        orphans.end_orphans()
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EACCES])
def test_an_owner_that_cannot_be_read_may_live(
    owner: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    child = marked(identity(owner.pid))
    read = Path.read_text

    def read_text(path: Path, *arguments: str, **more: str) -> str:
        if str(path) == f"/proc/{owner.pid}/stat":
            raise OSError(number, os.strerror(number))
        return read(path, *arguments, **more)

    monkeypatch.setattr(Path, "read_text", read_text)
    try:
        orphans.end_orphans()
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def test_not_being_able_to_look_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(orphans, "read_all", refuse)
    with pytest.raises(InfrastructureError, match="an earlier perfbisect left: Too many open files") as error:
        orphans.end_orphans()
    assert "ulimit -n" in error.value.cure


def test_a_look_that_fails_is_repeated_and_not_taken_for_none_left(monkeypatch: pytest.MonkeyPatch) -> None:
    child = marked("a-mark-of-the-test")
    mark = (
        Path(f"/proc/{child.pid}/environ").read_bytes().split(orphans.MARK.encode() + b"=")[1].split(b"\0")[0]
    )
    look, failures = processes.read_all, [1, 2, 3]

    def read_all(file: str) -> dict[int, bytes]:
        if failures:
            failures.pop()
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return look(file)

    monkeypatch.setattr(orphans, "read_all", read_all)
    try:
        assert orphans.end_marked(mark.decode()) == 1
        assert child.wait(20) == -signal.SIGTERM
    finally:
        child.kill()
        child.wait()


def test_what_is_between_two_programs_is_ended_too(tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.write_text('#!/bin/sh\nexec "$0"\n')
    again.chmod(0o755)
    for number in range(30):  # a look that takes an empty environment for none misses one in ten
        mark = f"test-of-{os.getpid()}-{number}"
        child = subprocess.Popen([again], env={**os.environ, orphans.MARK: mark})
        try:
            time.sleep(0.02)
            orphans.end_marked(mark)
            assert child.wait(10) == -signal.SIGTERM
        finally:
            child.kill()
            child.wait()


@pytest.mark.parametrize(
    ("code", "start", "end", "left"),
    [
        ("0", "0", "0", 1),  # new memory, nothing said of it
        ("0", "9", "9", 1),  # the start is known, the length is not
        (
            "4",
            "9",
            "99",
            1,
        ),  # the program was changed between the two looks: its environment is to be read again
        ("4", "9", "9", 0),  # a program with an empty environment
    ],
)
def test_an_environment_that_reads_as_empty_is_believed_of_a_program_that_has_begun(
    monkeypatch: pytest.MonkeyPatch, code: str, start: str, end: str, left: int
) -> None:
    looks = iter([{7: b""}, {7: b"MARK=the-mark"}, {}])
    monkeypatch.setattr(orphans, "read_all", lambda file: next(looks) if file == "environ" else {})
    stat = {3: "R", 9: "0", 26: code, 50: start, 51: end}
    monkeypatch.setattr(orphans, "read_stat", lambda _: stat)
    monkeypatch.setattr(orphans, "send_signal_if_marked", lambda *_: True)
    assert orphans.end_marked("the-mark") == left


def test_a_perfbisect_of_an_earlier_version_does_not_see_our_children() -> None:
    """It took every identity that is not '<pid>-<start time>' for that of a dead process."""
    shown: list[str] = []
    stream_command(["env"], shown.append)
    assert any(line.startswith(f"{orphans.MARK}=") for line in shown)
    assert not any(line.startswith("PERFBISECT_PROCESS=") for line in shown)
