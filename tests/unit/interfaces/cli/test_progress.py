"""The progress of a bisection: what is printed, and what is said of the time that is left."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.app.plan import ExpectedWork
from bisector.engine.events import Event, EventKind
from bisector.interfaces.cli.progress import ProgressDisplay, seconds_left

EXPECTED = ExpectedWork(builds=10, boots=20, runs=60, build_seconds=60, boot_seconds=6, run_seconds=1)
MEANS = (60.0, 6.0, 1.0)


def display(expected: ExpectedWork | None = EXPECTED) -> ProgressDisplay:
    return ProgressDisplay(lambda index: f"commit {index}", expected, terminal=False)


def decide(
    shown: ProgressDisplay, builds: int = 0, boots: int = 0, runs: int = 0, left: float | None = None
) -> None:
    shown(
        Event("decision", "1 run in a new boot", 3, "why", left=left, builds=builds, boots=boots, runs=runs)
    )


def printed(
    capsys: pytest.CaptureFixture[str], builds: int, boots: int, runs: int, left: float | None = None
) -> str:
    decide(display(), builds, boots, runs, left)
    return capsys.readouterr().err


def test_an_estimate_shrinks_with_what_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert "about 13 min to go" in printed(capsys, 0, 0, 0)
    assert "about 6 min to go" in printed(capsys, 5, 10, 30)


def test_the_time_left_is_the_work_that_is_not_done() -> None:
    assert seconds_left(EXPECTED, (0, 0, 0), MEANS) == 10 * 60 + 20 * 6 + 60
    assert seconds_left(EXPECTED, (5, 20, 60), MEANS) == pytest.approx(5 * 60 + 0.05 * (20 * 6 + 60))


@given(st.tuples(*[st.integers(0, 1000)] * 3), st.sampled_from(range(3)))
def test_the_time_left_never_grows_with_work_done_and_never_ends(done: tuple[int, ...], kind: int) -> None:
    more = tuple(number + (i == kind) for i, number in enumerate(done))
    assert 0 < seconds_left(EXPECTED, more, MEANS) <= seconds_left(EXPECTED, done, MEANS)


def test_times_measured_here_replace_the_expected_ones(capsys: pytest.CaptureFixture[str]) -> None:
    shown = display()
    for seconds in (100.0, 140.0):
        shown(Event("build", "the kernel is built", 3, seconds=seconds, builds=2))
    decide(shown, builds=2)
    # 8 builds of 120 s, 20 boots of 6 s, 60 runs of 1 s: 19 minutes
    assert "about 19 min to go" in capsys.readouterr().err


def test_an_estimate_that_is_used_up_is_not_a_promise(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, 11, 21, 80)
    assert "longer than expected" in text
    assert "to go" not in text


def test_behind_a_culprit_the_planner_tells_how_long_the_next_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "about 20 min to the next culprit" in printed(capsys, 11, 21, 80, left=1200.5)
    assert "about 6 min to go" in printed(capsys, 5, 10, 30, left=1200.5)


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
    monkeypatch.setattr("bisector.interfaces.cli.progress.time.monotonic", lambda: now)
    shown = display()
    for now in (1001.0, 1014.9, 1015.0, 1016.0, 1030.0):  # noqa: B007 - read by the lambda
        shown(Event("note", "compiling", 3))
    assert capsys.readouterr().err.splitlines() == ["[  0:15]     compiling", "[  0:30]     compiling"]


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
