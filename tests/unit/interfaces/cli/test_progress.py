"""The progress of a bisection: what is printed, and what is said of the time that is left."""

from __future__ import annotations

import io
from dataclasses import replace
from types import SimpleNamespace

import pytest

from bisector.app.time_left import ExpectedWork, WorkCounts
from bisector.engine.events import Event, EventKind
from bisector.interfaces.cli.progress import ProgressDisplay

EXPECTED = ExpectedWork(
    {
        "verify": WorkCounts(2, 4, 20),
        "search": WorkCounts(8, 16, 40),
        "certify": WorkCounts(),
        "attribute": WorkCounts(),
    },
    build_seconds=60,
    boot_seconds=6,
    run_seconds=1,
)


def display(expected: ExpectedWork | None = EXPECTED) -> ProgressDisplay:
    return ProgressDisplay(lambda index: f"commit {index}", expected, terminal=False)


def decide(
    shown: ProgressDisplay, builds: int = 0, boots: int = 0, runs: int = 0, left: float | None = None
) -> None:
    text = "1 run in a new boot"
    about = Event("decision", text, 3, "why", new_boot=True, left=left)
    shown(replace(about, builds=builds, boots=boots, runs=runs))


def printed(
    capsys: pytest.CaptureFixture[str], builds: int, boots: int, runs: int, left: float | None = None
) -> str:
    decide(display(), builds, boots, runs, left)
    return capsys.readouterr().err


def test_the_time_to_go_is_told_with_decisions_and_while_a_kernel_compiles(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("bisector.interfaces.cli.progress.time", SimpleNamespace(monotonic=lambda: now))
    shown = display()
    decide(shown)
    now = 1020.0
    shown(Event("note", "compiling: 50 of about 100 files", 3, share=0.5))
    now = 1040.0
    shown(Event("note", "sending", 3))
    # 2 builds of 60 s, 8 of 5.7 times that, 20 boots of 6 s and 60 runs of 1 s at 1.5; then builds of 40 s.
    assert capsys.readouterr().err.splitlines()[::2] == [
        "[  0:00] commit 3: 1 run in a new boot; in all about 12 min to go",
        "[  0:20]     compiling: 50 of about 100 files; in all about 9 min to go",
    ]


def test_an_estimate_that_is_used_up_is_not_a_promise(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, 11, 21, 80)
    assert "longer than expected" in text
    assert "to go" not in text


def test_behind_a_culprit_the_planner_tells_how_long_the_next_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "about 20 min to the next culprit" in printed(capsys, 11, 21, 80, left=1200.5)
    assert " to go" in printed(capsys, 5, 10, 30, left=1200.5)


def test_without_an_estimate_nothing_is_said_of_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    decide(display(None))
    assert "to go" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("build", "    some text (2 min)"),
        ("trouble", "    trouble: some text"),
        ("done", "some text"),
    ],
)
def test_each_kind_of_event_has_its_line(
    kind: EventKind, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with display() as shown:
        shown(Event(kind, "some text", 3, seconds=120.0))
    assert capsys.readouterr().err == f"[  0:00] {line}\n"


def test_a_decision_is_printed_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    decide(display(None))
    assert capsys.readouterr().err.splitlines() == [
        "[  0:00] commit 3: 1 run in a new boot",
        "[  0:00]     because why",
    ]


def test_notes_come_at_most_every_quarter_of_a_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("bisector.interfaces.cli.progress.time", SimpleNamespace(monotonic=lambda: now))
    shown = display()
    for now in (1001.0, 1014.9, 1015.0, 1016.0, 1030.0):  # noqa: B007 - read by the lambda
        shown(Event("note", "compiling", 3))
    assert capsys.readouterr().err.splitlines() == ["[  0:15]     compiling", "[  0:30]     compiling"]


def test_a_place_in_the_queue_is_printed_at_once_for_it_is_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = display()
    shown(Event("note", "queued: another perfbisect (process 7) runs the bisection 'a-1'"))
    shown(Event("note", "a-1 ended", testbed="guest"))
    assert capsys.readouterr().err.splitlines() == [
        "[  0:00]     queued: another perfbisect (process 7) runs the bisection 'a-1'"
    ]


def test_of_several_testbeds_each_line_names_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    shown = display(None)
    shown(Event("decision", "1 run in a new boot", 3, "why", testbed="box1"))
    shown(Event("run", "run 0: real 1 s", 3, testbed="box1"))
    shown(Event("decision", "1 run in a new boot", 4, "why", testbed="box2"))
    shown(Event("trouble", "it fell silent", 4, testbed="box2"))
    shown(Event("run", "run 1: real 1 s", 3, testbed="box1"))
    assert [line[9:] for line in capsys.readouterr().err.splitlines() if "because" not in line] == [
        "commit 3: 1 run in a new boot",
        "    run 0: real 1 s",
        "box2: commit 4: 1 run in a new boot",
        "    box2: trouble: it fell silent",
        "    box1: run 1: real 1 s",
    ]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_colours_the_line_and_the_suspects_are_still_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    with ProgressDisplay("commit {}".format) as shown:
        shown(Event("decision", "1 run", 3, "why", suspects=((7, 0.5),)))
        shown(Event("note", "compiling", 3))
    drawn = terminal.getvalue()
    assert " 50% " in drawn and "commit 7" in drawn
    assert "compiling" in drawn
    assert "\x1b[3" not in drawn  # a colour


def test_on_a_terminal_the_time_goes_on_between_two_events(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with ProgressDisplay("commit {}".format) as shown:
        shown(Event("note", "waiting for the machine", 3))
        shown._started -= 100.0
        shown._output._live.refresh()  # type: ignore[union-attr]
    assert "waiting for the machine | 2 min" in terminal.getvalue()
