"""What the live line says of the time that is left."""

from __future__ import annotations

import pytest

from bisector.engine.events import Event
from bisector.interfaces.cli.progress import ExpectedWork, ProgressDisplay

EXPECTED = ExpectedWork(builds=10, boots=20, runs=60, build_seconds=60, boot_seconds=6, run_seconds=1)


def said(
    capsys: pytest.CaptureFixture[str], builds: int, boots: int, runs: int, left: float | None = None
) -> str:
    live = ProgressDisplay(lambda index: f"commit {index}", EXPECTED, terminal=False)
    live(Event("decision", "1 run in a new boot", commit=3, left=left, builds=builds, boots=boots, runs=runs))
    return capsys.readouterr().err


def test_an_estimate_shrinks_with_what_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert "about 13 min to go" in said(capsys, 0, 0, 0)
    assert "about 6 min to go" in said(capsys, 5, 10, 30)


def test_an_estimate_that_is_used_up_is_not_a_promise(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, 11, 21, 80)
    assert "longer than expected" in text
    assert "to go" not in text


def test_behind_a_culprit_the_planner_tells_how_long_the_next_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "about 20 min to the next culprit" in said(capsys, 11, 21, 80, left=1200.5)
    assert "about 6 min to go" in said(capsys, 5, 10, 30, left=1200.5)
