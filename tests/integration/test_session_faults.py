"""Runs on this machine through the real agent: what works, and every way a workload can fail."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from bisector.adapters.agent.session import AgentSession
from bisector.adapters.machine import local_testbed
from bisector.adapters.machine.local_testbed import LocalTestbed, running_kernel
from bisector.adapters.system.channel import Line
from bisector.adapters.system.command import CompletedCommand, run_command
from bisector.errors import BootFailed, InfrastructureError, RequestError, TestbedLost, WorkloadFailed
from tests.support.workload_jobs import shell_job

AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")


def quiet(_: str) -> None:
    pass


Start = Callable[..., AgentSession]
"""Boot with this script as its workload; options: of the job."""


@pytest.fixture
def boot(tmp_path: Path) -> Iterator[Start]:
    sessions: list[AgentSession] = []

    def start(script: str, **options: Any) -> AgentSession:
        job = shell_job(tmp_path, script, **options)
        session = LocalTestbed().boot(running_kernel(), job, tmp_path / "boot", quiet)
        assert isinstance(session, AgentSession)
        sessions.append(session)
        return session

    yield start
    for session in sessions:
        session.leave()


def test_a_run_gives_values_and_keeps_its_output(boot: Start, tmp_path: Path) -> None:
    session = boot("echo real: 1.5 s; echo note >&2")
    result = session.run(0)
    assert result.values == {"real": 1.5}
    assert result.flags == ()
    assert result.raw == tmp_path / "boot" / "run-000.out"
    assert result.raw.read_text() == "real: 1.5 s\n"
    assert result.raw.with_suffix(".err").read_text() == "note\n"
    assert json.loads(result.raw.with_suffix(".json").read_text())["ticks"] > 0
    assert 0 < result.guest_seconds < result.seconds + 0.01
    assert session.run(1).raw.name == "run-001.out"


def test_what_leaves_its_session_ends_with_the_boot(boot: Start) -> None:
    """Such a process outlived `workload run`, and disturbed whatever was measured next."""
    session = boot(
        "setsid setsid sh -c 'echo $$ > pid; exec sleep 98' & until [ -s pid ]; do :; done; echo real: 1"
    )
    session.run(0)
    pid = int((session.folder / "work" / "pid").read_text())
    assert Path(f"/proc/{pid}").exists()
    session.leave()
    assert not Path(f"/proc/{pid}").exists()


def test_a_failing_cleanup_is_told(boot: Start, caplog: pytest.LogCaptureFixture) -> None:
    session = boot("echo real: 1.5", cleanup="sleep 6; echo cannot unmount; exit 3")
    session.run(0)
    session.leave()
    assert "the cleanup of the workload 'toy' failed (code 3)" in caplog.text
    assert "cannot unmount" in caplog.text


def test_files_that_a_run_leaves_are_brought_home_and_read(boot: Start, tmp_path: Path) -> None:
    script = """
    if [ ! -e before ]; then touch before; mkdir -p out/0; echo '{"real": 1.5}' > out/0/stats.json
    elif [ ! -e again ]; then touch again; mkdir out; echo '{"real": ' > out/stats.json
    elif [ ! -e fail ]; then touch fail; mkdir out; echo log > out/log; exit 3; fi
    """
    session = boot(script, results="out")
    result = session.run(0)
    assert result.values == {"real": 1.5}
    assert (tmp_path / "boot" / "run-000.results" / "out" / "0" / "stats.json").is_file()
    assert not (tmp_path / "boot" / "work" / "out").exists()
    with pytest.raises(WorkloadFailed, match="not valid JSON"):
        session.run(1)
    with pytest.raises(WorkloadFailed, match="ended with code 3"):
        session.run(2)
    assert (tmp_path / "boot" / "run-002.results" / "out" / "log").read_text() == "log\n"
    with pytest.raises(WorkloadFailed, match="the run left no 'out'"):
        session.run(3)


def test_the_session_is_pinned(boot: Start) -> None:
    session = boot(
        "echo real: 1; env | sort; pwd; ps -o sid=,pgid=,pid= -p $$; cat; exec 2>/dev/null; tty; true"
    )
    lines = session.run(0).raw.read_text().splitlines()
    variables = [line for line in lines if "=" in line]
    assert variables == [
        "HOME=/",
        "LC_ALL=C",
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
        "PWD=" + os.path.realpath(lines[-3]),
        "TZ=UTC",
        "WORD=hello",
    ]
    sid, group, pid = lines[-2].split()
    assert sid == group == pid
    assert lines[-1] == "not a tty"


def test_facts_and_settings_are_told_and_undone(boot: Start) -> None:
    before = AUTOGROUP.read_text().strip() if AUTOGROUP.exists() else "absent"
    session = boot("echo real: 1")
    facts = session.facts.facts
    assert session.facts.release == os.uname().release
    assert facts["setting.autogroup.before"] == before
    assert facts["setting.autogroup.after"] in ("0", "absent")
    assert "cmdline" in facts
    assert any(name.startswith("sysctl.vm.") for name in facts)
    session.leave()
    session.leave()
    assert not AUTOGROUP.exists() or AUTOGROUP.read_text().strip() == before


def test_a_settling_time_comes_before_the_first_run_only(boot: Start) -> None:
    session = boot("echo real: 1", settle=2.5)
    started = time.monotonic()
    session.run(0)
    assert time.monotonic() - started >= 2.5
    started = time.monotonic()
    session.run(1)
    assert time.monotonic() - started < 2.5


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo oh no >&2; exit 3", "ended with code 3"),
        ("kill -SEGV $$", "ended by signal 11"),
        ("echo done", "the output has no metric 'real'"),
        ("echo real: nan s", "not a finite number: nan"),
        ("echo real: -inf s", "not a finite number: -inf"),
        ("echo real: quick", "not a number: 'quick'"),
        ("echo real: 5 ms", "in 'ms', its manifest says 's'"),
    ],
)
def test_a_failing_workload_says_how(boot: Start, script: str, words: str) -> None:
    with pytest.raises(WorkloadFailed) as caught:
        boot(script).run(0)
    assert words in caught.value.message
    if "oh no" in script:
        assert "oh no" in caught.value.details


def test_a_program_that_cannot_be_started(tmp_path: Path, boot: Start) -> None:
    session = boot("echo real: 1")
    (tmp_path / "boot" / "work" / "toy.sh").chmod(0o644)
    with pytest.raises(WorkloadFailed, match=r"cannot be started: \./toy\.sh: Permission denied"):
        session.run(0)


def test_a_hanging_workload_is_ended_with_all_it_started(boot: Start) -> None:
    session = boot("sleep 98763 & sleep 98763", timeout=1)
    started = time.monotonic()
    with pytest.raises(WorkloadFailed, match="did not end within 1 s"):
        session.run(0)
    assert time.monotonic() - started < 60
    assert subprocess.run(["pgrep", "-f", "^sleep 98763$"], stdout=subprocess.DEVNULL).returncode == 1


def test_what_a_workload_leaves_behind_is_ended(boot: Start) -> None:
    boot("sleep 98764 & echo real: 1").run(0)
    assert subprocess.run(["pgrep", "-f", "^sleep 98764$"], stdout=subprocess.DEVNULL).returncode == 1


def test_large_output_keeps_its_end(boot: Start) -> None:
    result = boot("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo real: 7").run(0)
    assert result.values == {"real": 7.0}
    assert result.raw.stat().st_size == 1 << 20


def test_a_killed_agent_is_a_lost_testbed_and_stays_one(boot: Start) -> None:
    session = boot("sleep 5; echo real: 1")
    os.kill(cast("Any", session.line)._process.pid, signal.SIGKILL)
    with pytest.raises(TestbedLost):
        session.run(0)
    with pytest.raises(TestbedLost):
        session.run(1)


def test_a_crash_on_the_console_during_a_run_is_the_kernels(boot: Start) -> None:
    session = boot("sleep 20; echo real: 1")
    session.crashed = lambda: "Kernel panic - not syncing: of course"
    with pytest.raises(BootFailed) as caught:
        session.run(0)
    assert "of course" in caught.value.details
    with pytest.raises(BootFailed):
        session.run(1)


def test_this_machine_boots_no_other_kernel(tmp_path: Path) -> None:
    from dataclasses import replace

    job = shell_job(tmp_path, "echo real: 1")
    with pytest.raises(RequestError, match=r"cannot boot the kernel 2\.6\.18"):
        LocalTestbed().boot(replace(running_kernel(), release="2.6.18"), job, tmp_path / "boot", quiet)


def test_settings_are_put_back_where_the_agent_does_not_greet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they were is written in the work folder; a machine that keeps them measures otherwise."""
    asked: list[tuple[list[object], object]] = []

    def run(command: list[Any], **given: Any) -> CompletedCommand:
        asked.append((command[1:2], given["cwd"]))
        return run_command(command, **given)

    def silent(line: Line) -> None:
        raise InfrastructureError("no greeting")

    monkeypatch.setattr(local_testbed, "run_command", run)
    monkeypatch.setattr(local_testbed, "await_greeting", silent)
    job = shell_job(tmp_path, "echo real: 1")
    with pytest.raises(InfrastructureError, match="no greeting"):
        LocalTestbed().boot(running_kernel(), job, tmp_path / "boot", quiet)
    work = tmp_path / "boot" / "work"
    assert asked == [(["prepare"], work), (["undo"], work)]
