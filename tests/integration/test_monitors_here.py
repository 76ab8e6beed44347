"""Monitors through the real agent, on this machine: what they keep, and what they say is not there."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from bisector.adapters.agent import monitor_output
from bisector.adapters.agent.monitors import plans
from bisector.adapters.agent.session import AgentSession
from bisector.adapters.machine.local_testbed import LocalTestbed, running_kernel
from bisector.model.facts import MonitorResult
from bisector.ports import Session
from bisector.schemas.workload.monitors import Monitors
from tests.support.workload_jobs import shell_job


def boot(folder: Path, script: str, *asked: str) -> tuple[Session, list[MonitorResult]]:
    """Return the session on this machine, after one run, and what the monitors saw."""
    monitors = plans(Monitors().with_requested(asked))
    job = dataclasses.replace(shell_job(folder, script), monitors=monitors)
    session = LocalTestbed().boot(running_kernel(), job, folder / "boot", lambda _: None)
    try:
        assert session.run(0).values == {"real": 1.5}
        return session, [session.run_monitor(monitor) for monitor in monitors]
    except BaseException:
        session.leave()
        raise


def test_each_monitor_has_a_run_and_says_what_it_has_not(tmp_path: Path) -> None:
    session, found = boot(
        tmp_path,
        "true; true; echo real: 1.5\n",
        *("proc=/proc/stat,/proc/nothing*", "dmesg", "ftrace=no_such_function"),
    )
    try:
        by_name = {one.monitor: one for one in found}
        proc = by_name["proc"]
        assert {"stat ctxt", "stat processes"} <= {seen.name for seen in proc.seen}
        assert proc.absent == ("/proc/nothing*: there is no such file",)
        assert (Path(proc.folder) / "run.out").read_text() == "real: 1.5\n"
        assert (Path(proc.folder) / "proc:stat.before").stat().st_size > 100
        assert not by_name["ftrace"].seen
        assert by_name["ftrace"].absent  # no profiler in this kernel, or no such function
        assert by_name["dmesg"].seen or by_name["dmesg"].absent
        assert session.run(1).values == {"real": 1.5}
    finally:
        session.leave()


def test_a_run_that_hangs_beside_a_monitor_is_ended_and_the_next_one_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor_output, "deadline_seconds", lambda timeout, monitor: 2.0)
    script = "[ -d perfbisect-observed ] && [ ! -e hung ] && touch hung && sleep 60\necho real: 1.5\n"
    session, found = boot(tmp_path, script, "proc=/proc/stat")
    try:
        assert found[0].absent[0] == "the run beside it did not end within 2 s"
        assert session.run(1).values == {"real": 1.5}
    finally:
        session.leave()


def test_the_agent_says_where_code_of_modules_is_and_goes_on(tmp_path: Path) -> None:
    session, _ = boot(tmp_path, "echo real: 1.5\n")
    try:
        assert isinstance(session, AgentSession)
        code = re.compile(r"^[0-9a-f]{16} [tTwW] \S+\t\[.*\]$", re.MULTILINE)
        listed = Path("/proc/kallsyms").read_text()
        assert session.module_symbols().splitlines() == code.findall(listed)
        assert session.run(1).values == {"real": 1.5}
    finally:
        session.leave()
