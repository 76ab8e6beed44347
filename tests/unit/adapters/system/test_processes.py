"""Which process it is, whether it lives, and how it is ended; what cannot be known is not taken for dead."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Never

import pytest

from bisector.adapters.system import processes
from bisector.adapters.system.processes import (
    command_lines,
    end_group,
    identity,
    kill,
    life,
    read_all,
    read_stat,
    send_signal_if_marked,
)
from tests.support.waiting import until

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def run(*command: str, **how: Any) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(command, **how))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


def changed(identity: str, place: int, value: str) -> str:
    parts = identity.split("-")
    parts[place] = value
    return "-".join(parts)


def refuse(number: int) -> Callable[..., Never]:
    def raises(*_: object, **__: object) -> Never:
        raise OSError(number, os.strerror(number))

    return raises


# --- which one, and does it live? ---------------------------------------------------------------------------


def test_a_process_lives_until_it_ends_and_a_zombie_does_not(start: Start) -> None:
    process = start("sleep", "60")
    own = identity(process.pid)
    assert life(own) == "alive"
    assert life(identity(os.getpid())) == "alive"
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert (read_stat(process.pid) or {})[3] == "Z"
    assert life(own) == "dead"
    process.wait()
    assert read_stat(process.pid) is None
    assert life(own) == "dead"


def test_a_leader_that_ended_before_its_threads_lives(start: Start) -> None:
    code = "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(60,)).start();"
    process = start(
        sys.executable, "-c", f"{code} ctypes.CDLL(None).syscall(60, 0)", stderr=subprocess.DEVNULL
    )
    until(lambda: (read_stat(process.pid) or {})[3] == "Z", 20)
    assert life(identity(process.pid)) == "alive"


def test_a_number_that_another_process_has_now_is_not_the_one(start: Start) -> None:
    own = identity(start("sleep", "60").pid)
    assert life(changed(own, 1, str(int(own.split("-")[1]) - 1))) == "dead"


def test_what_an_earlier_boot_started_is_dead_whoever_has_its_number_now() -> None:
    assert life(changed(identity(os.getpid()), 2, "0" * 32)) == "dead"


def test_numbers_of_another_pid_namespace_say_nothing() -> None:
    assert life(changed(identity(os.getpid()), 3, "1")) == "unknown"


@pytest.mark.parametrize(
    "text", ["", "17", "a-b-c-d", "17-18", "test-of-a-mark", "1-2-3-4-5", "7--a-1", "-1-2-3-4"]
)
def test_what_is_no_identity_is_of_unknown_life(text: str) -> None:
    assert life(text) == "unknown"


@pytest.mark.parametrize(
    "number", [errno.EMFILE, errno.ENFILE, errno.EACCES, errno.EPERM, errno.EIO, errno.ENOMEM]
)
def test_a_process_that_cannot_be_read_is_not_taken_for_dead(
    start: Start, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    own = identity(start("sleep", "60").pid)
    monkeypatch.setattr(Path, "read_text", refuse(number))
    assert life(own) == "unknown"


def test_no_descriptor_left_is_no_death(start: Start) -> None:
    """The real thing: a process that has none looks at one that lives."""
    code = (
        "import os, resource; from bisector.adapters.system import processes as p; p.identity(1);"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3));"
        "print(p.life('{}'), flush=True)\n"
        "try: p.read_all('environ')\n"
        "except OSError as error: print(error.errno)"
    )
    own = identity(start("sleep", "60").pid)
    done = subprocess.run(
        [sys.executable, "-c", code.format(own)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["unknown", str(errno.EMFILE)]


def test_a_process_that_proc_hides_is_not_taken_for_dead(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With hidepid other users' processes are not in /proc; kill(2) knows them all the same."""
    process = start("sleep", "60")
    own = identity(process.pid)
    monkeypatch.setattr(Path, "read_text", refuse(errno.ENOENT))
    assert life(own) == "unknown"
    monkeypatch.setattr(os, "kill", refuse(errno.EPERM))
    assert life(own) == "unknown"
    monkeypatch.setattr(os, "kill", refuse(errno.ESRCH))
    assert life(own) == "dead"


def test_a_process_in_a_pid_namespace_of_its_own_is_not_taken_for_dead() -> None:
    code = "import os; from bisector.adapters.system.processes import identity; print(identity(os.getpid()))"
    command = [
        "unshare",
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount-proc",
        sys.executable,
        "-c",
        code,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"this machine grants no pid namespace: {done.stderr.strip()}")
    assert life(done.stdout.strip()) == "unknown"


# --- reading ------------------------------------------------------------------------------------------------


def test_the_name_of_a_process_may_hold_anything(start: Start, tmp_path: Path) -> None:
    odd = tmp_path / "a) Z (b 1"
    odd.symlink_to("/bin/sleep")
    process = start(str(odd), "60")
    until(lambda: Path(f"/proc/{process.pid}/comm").read_text().startswith("a)"), 20)
    assert int((read_stat(process.pid) or {})[4]) == os.getpid()


def test_every_other_process_is_read_and_one_that_is_gone_meanwhile_left_out(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start("sleep", "60")
    until(lambda: Path(f"/proc/{process.pid}/cmdline").read_bytes().startswith(b"sleep"), 20)
    monkeypatch.setattr(processes, "_pids", lambda: [process.pid, os.getpid(), 2**22 + 1])
    assert read_all("cmdline") == {process.pid: b"sleep\x0060\x00"}
    assert dict(command_lines()) == {process.pid: [b"sleep", b"60", b""]}


# --- ending -------------------------------------------------------------------------------------------------


def test_a_group_is_told_to_end_first(start: Start, tmp_path: Path) -> None:
    script = (
        f"trap 'touch {tmp_path}/told; exit 7' TERM; touch {tmp_path}/ready; while :; do sleep 0.02; done"
    )
    process = start("sh", "-c", script, start_new_session=True)
    until((tmp_path / "ready").exists, 20)
    end_group(process.pid)
    assert (tmp_path / "told").exists()
    assert process.wait(0) == 7


def test_what_is_left_of_a_group_whose_leader_obeys_is_killed(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "GRACE_SECONDS", 0.2)
    script = (
        f"sh -c 'trap \"\" TERM; echo $$ >{tmp_path}/child; while :; do sleep 0.02; done' & exec sleep 60"
    )
    process = start("sh", "-c", script, start_new_session=True)
    until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text().endswith("\n"), 20)
    child = identity(int((tmp_path / "child").read_text()))
    end_group(process.pid)
    assert life(child) == "dead"
    assert process.wait(0) == -signal.SIGTERM
    end_group(process.pid)  # no harm


def test_a_signal_reaches_only_what_still_bears_the_mark(start: Start) -> None:
    process = start("sleep", "60", env={"PB_TEST": "one"})
    until(lambda: Path(f"/proc/{process.pid}/cmdline").read_bytes().startswith(b"sleep"), 20)
    assert not send_signal_if_marked(process.pid, signal.SIGTERM, b"PB_TEST=two")
    assert process.poll() is None
    assert send_signal_if_marked(process.pid, signal.SIGTERM, b"PB_TEST=one")
    assert process.wait(20) == -signal.SIGTERM
    assert not send_signal_if_marked(process.pid, signal.SIGTERM, b"PB_TEST=one")


@pytest.mark.parametrize("handles", [True, False])
def test_a_killed_process_is_gone_when_the_call_returns(
    start: Start, monkeypatch: pytest.MonkeyPatch, handles: bool
) -> None:
    if not handles:  # before Linux 5.3, or with no descriptor left
        monkeypatch.setattr(os, "pidfd_open", refuse(errno.EMFILE))
    process = start("sleep", "60")
    own = identity(process.pid)
    kill(process.pid)
    assert life(own) == "dead"  # a zombie until its parent looks
    assert process.wait(0) == -signal.SIGKILL
    kill(process.pid)  # no harm


def test_one_that_is_stuck_does_not_hold_us_up(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_KILL_SECONDS", 0.1)
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda *_: None)  # as in uninterruptible sleep
    process = start("sleep", "60")
    waiting = threading.Thread(target=kill, args=(process.pid,), daemon=True)
    waiting.start()
    waiting.join(20)
    assert not waiting.is_alive()
    assert process.poll() is None
