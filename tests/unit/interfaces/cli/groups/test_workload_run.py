"""`perfbisect workload run`: what is asked for, what is printed, what is summed up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bisector.app import single_run
from bisector.app.wiring import Wiring
from bisector.interfaces.cli import run
from bisector.ports import BuildOrder, RunResult
from bisector.schemas.workload.workload import Workload
from bisector.testing.fakes import FakeSource
from tests.support import fake_bisection

GRAPH = fake_bisection.a_lab().graph
COMMAND = ["workload", "run", "pipe-test", "--rev", "bad", "--testbed", "bed", "--recipe", "toy"]


@pytest.fixture
def asked(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, BuildOrder, int, str]]:
    """Return what was asked for. A warm-up of 1.5 s, then 2.5, one that stalls, and 4.5, 5.5 ..."""
    found: list[tuple[str, BuildOrder, int, str]] = []

    def measure_commit(
        wiring: Wiring, workload: Workload, order: BuildOrder, runs: int, *_: object, **named: Any
    ) -> Iterator[RunResult]:
        found.append((workload.name, order, runs, named["testbed_name"]))
        for number in range(1 + runs):
            yield RunResult({"real": 1.5 + number}, 1.0, 1.0, Path("raw"), flags=("stall",) * (number == 2))

    monkeypatch.setattr(Wiring, "source", lambda wiring, repo=None: FakeSource(GRAPH))
    monkeypatch.setattr(single_run, "measure_commit", measure_commit)
    return found


def test_a_commit_is_run_on_the_testbed_and_by_the_recipe_that_are_named(
    asked: list[tuple[str, BuildOrder, int, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*COMMAND, "--runs", "2"]) == 0
    assert asked == [("pipe-test", BuildOrder(GRAPH.shas[GRAPH.bad], "toy"), 2, "bed")]
    assert capsys.readouterr().out.splitlines() == [
        "run 0: real 1.5 s (warm-up)",
        "run 1: real 2.5 s",
        "run 2: real 3.5 s (stall)",
    ], "one sample has no spread"


@pytest.mark.usefixtures("asked")
def test_what_counts_is_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*COMMAND, "--runs", "4"]) == 0
    out = capsys.readouterr().out
    assert "run 4: real 5.5 s" in out
    assert "2.5000 .. 5.5000" in out, "neither the warm-up nor the run that stalled"
    assert "real: 3 runs a side show a change of" in out
    assert "real: far off" not in out


@pytest.mark.usefixtures("asked")
def test_json_has_the_runs_and_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*COMMAND, "--runs", "4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["warmup"], one["values"]["real"], one["flags"]) for one in found["runs"]] == [
        (True, 1.5, []),
        (False, 2.5, []),
        (False, 3.5, ["stall"]),
        (False, 4.5, []),
        (False, 5.5, []),
    ]
    (real,) = found["summary"]
    assert (real["metric"]["name"], real["runs"], real["low"], real["high"]) == ("real", 3, 2.5, 5.5)
    assert real["mean"] == pytest.approx(12.5 / 3)
