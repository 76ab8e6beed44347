"""What the agent sends of a monitored run: files below one folder, and an answer that is no error."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.agent import monitor_output
from bisector.adapters.agent.answers import AnswerError, FilePiece, Paused, StartError
from bisector.adapters.agent.monitor_output import MonitorOutput, deadline_seconds
from bisector.adapters.agent.run_outcome import Outcome
from bisector.errors import TestbedLost
from bisector.model.facts import MonitorValue
from bisector.ports import Monitor
from tests.support.agent_answers import finished


def piece(name: str, data: bytes, *, cut: int = 0) -> FilePiece:
    return FilePiece.model_construct(file=name, data=data, cut=cut)


def test_a_monitors_runs_may_take_longer_than_as_many_ordinary_ones() -> None:
    assert deadline_seconds(10.0, Monitor("perf-stat", (), runs=3)) > 30.0


def test_files_come_in_pieces_and_the_end_of_an_ordinary_run_is_skipped(tmp_path: Path) -> None:
    output = MonitorOutput(tmp_path / "proc", "proc")
    assert not output.take(finished())  # the run that lasted when the monitor was asked for
    assert not output.take(finished(monitor="dmesg"))
    assert not output.take(piece("proc:vmstat.before", b"pgfault 1\n"))
    assert not output.take(piece("proc:vmstat.after", b"pgfault "))
    assert not output.take(piece("proc:vmstat.after", b"5\n"))
    last = finished(monitor="proc", out=b"said")
    assert output.take(last)
    found = output.summarise(Outcome(last, 2.0))
    assert found.seen == (MonitorValue("vmstat pgfault", 4),)
    assert found.absent == ()
    assert found.seconds == 2.0
    assert (Path(found.folder) / "summary.json").is_file()
    assert (Path(found.folder) / "run.out").read_bytes() == b"said"


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (
            Outcome(finished(code=3, err=b"first\ntoy: it broke\n"), 1.0),
            "the run beside it ended with code 3 (toy: it broke)",
        ),
        (Outcome(finished(signal=9), 1.0, 2.0), "the run beside it did not end within 2 s"),
        (Outcome(finished(signal=11), 1.0), "the run beside it was ended by signal 11"),
        (
            Outcome(StartError(error="./toy", reason="No such file"), 1.0),
            "the run beside it cannot be started: ./toy: No such file",
        ),
    ],
)
def test_a_run_that_fails_beside_a_monitor_is_reported_and_no_error(
    tmp_path: Path, outcome: Outcome, words: str
) -> None:
    output = MonitorOutput(tmp_path / "proc", "proc")
    output.take(piece("big", b"x", cut=1))
    absent = output.summarise(outcome).absent
    assert absent[0] == words
    assert "big: only its beginning was kept, it is too large" in absent


def test_a_program_that_is_not_installed_is_reported_once(tmp_path: Path) -> None:
    output = MonitorOutput(tmp_path / "perf-stat", "perf-stat")
    output.take(piece("absent", b"perf: it is not installed here\n"))
    assert output.summarise(Outcome(finished(code=127), 1.0)).absent == ("perf: it is not installed here",)


def test_what_was_not_asked_and_too_much_of_it_is_the_testbeds_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor_output, "_MAX_BYTES", 10)
    output = MonitorOutput(tmp_path / "proc", "proc")
    with pytest.raises(AnswerError, match="what was not asked"):
        output.take(Paused(paused=1))
    with pytest.raises(AnswerError, match="what was not asked"):
        output.take(piece("summary.json", b"{}"))  # this side writes a file of that name
    output.take(piece("a", b"x" * 10))
    with pytest.raises(TestbedLost, match="sent more than"):
        output.take(piece("b", b"x"))


def test_files_without_number_are_the_testbeds_failure(tmp_path: Path) -> None:
    output = MonitorOutput(tmp_path / "proc", "proc")
    with pytest.raises(TestbedLost, match="more than 1000 files"):
        for number in range(2000):
            output.take(piece(f"f{number}", b"", cut=1))
    assert len(list((tmp_path / "proc").iterdir())) == 1000
