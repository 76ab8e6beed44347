"""What `queue` and `worker` print: which columns a narrow terminal keeps, which events, which exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from bisector.adapters.system.host_requirements import Check
from bisector.app import find_culprit
from bisector.app.execution import worker_check
from bisector.app.operations.local_operations import LocalOperations
from bisector.engine.events import Event, EventKind
from bisector.errors import ExitCode
from bisector.interfaces.cli import run
from bisector.interfaces.cli.queue import print_event
from tests.support.command_line import said

ROW = {
    "id": "pipe-1",
    "status": "running",
    "priority": 2,
    "workload": "pipe-test",
    "testbeds": ["box1", "box2"],
    "boots": 7,
    "expected_begin": None,
    "expected_end": 7300.0,
    "owner": "ann",
    "measures_on": ["box1"],
    "prepares_on": [],
    "unusable": {},
    "capped": "",
    "builds": False,
    "waits_for": {},
}


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFBISECT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "160")


def let_wait(monkeypatch: pytest.MonkeyPatch, *rows: dict[str, object], executor: str | None = None) -> None:
    """Let the queue have these rows."""
    found = {"executor": executor, "bisections": rows}
    monkeypatch.setattr(LocalOperations, "queue", lambda own: {**found, "now": 100.0})


def test_a_row_says_what_is_done_where_and_for_how_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    let_wait(monkeypatch, ROW, executor="a worker")
    assert run(["queue"]) == 0
    out, err = capsys.readouterr()
    head, row = (line.split() for line in out.splitlines())
    assert head == ["ID", "STATUS", "PRIORITY", "WORKLOAD", "TESTBEDS", "BOOTS", "END", "NOW"]
    assert " ".join(row) == "pipe-1 running high pipe-test box1, box2 7 in 2 h 00 min measures on box1"
    assert err == "", "somebody executes them"
    let_wait(monkeypatch, ROW, {**ROW, "id": "pipe-2", "owner": "bob", "measures_on": []})
    assert run(["queue"]) == 0
    out, err = capsys.readouterr()
    assert [line.split("min  ")[1] for line in out.splitlines()[1:]] == [
        "ann: measures on box1",
        "bob: waits for a testbed or a kernel",
    ]
    assert err == "nobody executes them: 'perfbisect worker' does, and so does the next 'start'\n"


def test_a_narrow_terminal_keeps_what_is_done_now(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    let_wait(monkeypatch, ROW, executor="a worker")
    monkeypatch.setenv("COLUMNS", "60")
    text = said(capsys, "queue")
    assert "measures on box1" in text and "running" in text and "in 2 h" in text
    assert "pipe-test" not in text and max(map(len, text.splitlines())) <= 60


def test_events_that_people_need_are_told_with_their_place(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in get_args(EventKind):
        print_event("pipe-1", Event(kind, f"it is a {kind}", testbed="box", boots=3))
    print_event("pipe-1", Event("note", "it rests"))
    assert capsys.readouterr().err.splitlines() == [
        *(
            f"pipe-1 on box: it is a {kind} (3 boots)"
            for kind in get_args(EventKind)
            if kind in ("decision", "note", "trouble", "done")
        ),
        "pipe-1: it rests",
    ]


def test_programs_get_every_event_with_all_of_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    event = Event("run", "ran", reason="why", testbed="b", seconds=2.5, value=0.5, runs=3, boots=2, builds=1)
    monkeypatch.setattr(find_culprit, "serve", lambda wiring, on_event, *_, **__: on_event("pipe-1", event))
    line = said(capsys, "worker", "--json")
    assert json.loads(line) == {
        "id": "pipe-1",
        "kind": "run",
        "text": "ran",
        "reason": "why",
        "testbed": "b",
        "seconds": 2.5,
        "value": 0.5,
        "builds": 1,
        "boots": 2,
        "runs": 3,
    }


@pytest.mark.parametrize(
    ("checks", "code"),
    [
        ([Check("git", found="2.39")], 0),
        ([Check("git", found="2.39"), Check("ccache", wrong="not there", optional=True)], 0),
        ([Check("gcc", wrong="not there")], 3),
        (
            [Check("gcc", wrong="not there"), Check("lab", wrong="broken", exit_code=ExitCode.WRONG_REQUEST)],
            1,
        ),
    ],
)
def test_a_check_ends_with_what_does_not_come_back_by_itself(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, checks: list[Check], code: int
) -> None:
    asked: list[str] = []

    def check_worker(wiring: object, name: str) -> list[Check]:
        asked.append(name)
        return checks

    monkeypatch.setattr(worker_check, "check_worker", check_worker)
    out = said(capsys, "worker", "rack1", "--check", code=code)
    assert all(check.name in out for check in checks)
    found = json.loads(said(capsys, "worker", "rack1", "--check", "--json", code=code))
    assert [one["ok"] for one in found] == [check.ok for check in checks]
    assert asked == ["rack1", "rack1"]
