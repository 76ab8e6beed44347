"""The commands for bisections that others execute, one after the other as a user would type them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bisector.engine.state_lock import QUEUE, lock
from bisector.interfaces.cli import run
from tests.support import fake_bisection as fake
from tests.support.command_line import START, Bench, said


def test_queued_watched_executed_and_reported(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    name = said(capsys, *START, "--detach").split()[0]
    assert run(["queue"]) == 0
    out, err = capsys.readouterr()
    assert re.search(rf"^{name} +queued .*waits for a testbed or a kernel", out, re.MULTILINE)
    assert "nobody executes them: 'perfbisect worker' does" in err
    assert run(["worker", "--until-idle"]) == 0
    _, err = capsys.readouterr()
    assert f"{name} on fake: " in err
    assert err.splitlines()[-1].endswith("nothing is queued")
    assert "Nothing is queued." in said(capsys, "queue")
    report = bench.state / "bisections" / name / "report.txt"
    assert bench.lab.graph.shas[fake.CULPRIT][:12] in report.read_text(), "written by the worker"
    assert bench.lab.graph.shas[fake.CULPRIT][:12] in said(capsys, "watch", name)


def test_what_rests_is_not_watched_and_can_be_paused_resumed_and_cancelled(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    name = said(capsys, *START, "--detach").split()[0]
    said(capsys, "pause", name)
    assert "Nothing is queued." in said(capsys, "queue")
    assert run(["watch", name]) == 1
    assert f"the bisection '{name}' is not executed (paused)" in capsys.readouterr().err
    assert said(capsys, *START, "--detach").split()[0] == name, "the same request goes on"
    said(capsys, "cancel", name)
    assert run(["pause", name]) == 1
    assert "has ended (cancelled)" in capsys.readouterr().err


def test_who_queues_is_told_who_executes(
    bench: Bench, capsys: pytest.CaptureFixture[str], own_folders: Path
) -> None:
    with lock(bench.state, QUEUE):
        assert run([*START, "--detach"]) == 0
        assert "executes what is queued in this state folder" in capsys.readouterr().err
        assert run(["worker"]) == 1
        assert "executes what is queued in this state folder" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[*START, "--detach"], ["worker"]])
def test_a_database_server_has_no_queue_yet(
    bench: Bench,
    command: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Executors on two hosts would execute the same bisection."""
    monkeypatch.setenv("PERFBISECT_DATABASE", "postgresql://nobody@127.0.0.1:1/none")
    assert run(command) == 1
    assert "a queue needs a state file so far" in capsys.readouterr().err
