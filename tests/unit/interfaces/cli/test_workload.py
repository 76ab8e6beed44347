"""`perfbisect workload`: what it lists and shows, and a run of a commit on a testbed."""

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


def test_list_names_every_workload_and_what_decides(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workload", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "DECIDED", "BY", "DESCRIPTION"]
    (line,) = [line for line in lines if line.startswith("pipe-test ")]
    assert line.split(maxsplit=3)[1:3] == ["real", "(s)"]
    assert run(["workload", "list", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(lines) - 1


def test_show_says_what_a_manifest_means(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workload", "show", "pipe-test"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for words in (
        "command pipe-test 20000",
        "parameters none",
        "real in s, lower is better, threshold 5%, decides",
        "user in s, lower is better, threshold 20% sys",
        "runs 3 to begin with, after 1 for warming up",
        "timeout 120 s",
        "clocks wall or instructions",
        "runs on debian or initramfs",
        "requires nothing",
        "autogroup=0",
    ):
        assert words in shown


def test_show_of_an_unknown_name_is_a_wrong_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workload", "show", "pipe-tset"]) == 1
    assert "pipe-test" in capsys.readouterr().err


@pytest.mark.parametrize("as_json", [False, True])
def test_a_commit_is_run_on_the_testbed_and_by_the_recipe_that_are_named(
    as_json: bool, own_folders: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = fake_bisection.a_lab().graph
    asked: list[tuple[str, BuildOrder, int, str]] = []

    def measure_commit(
        wiring: Wiring, workload: Workload, order: BuildOrder, runs: int, *_: object, **named: Any
    ) -> Iterator[RunResult]:
        asked.append((workload.name, order, runs, named["testbed_name"]))
        for number in range(1 + runs):
            yield RunResult({"real": 1.5 + number}, 1.0, 1.0, Path("raw"), flags=("stall",) * (number == 2))

    monkeypatch.setattr(Wiring, "source", lambda wiring, repo=None: FakeSource(graph))
    monkeypatch.setattr(single_run, "measure_commit", measure_commit)
    command = ["workload", "run", "pipe-test", "--rev", "bad", "--testbed", "bed", "--recipe", "toy"]
    assert run([*command, "--runs", "2", *(["--json"] if as_json else [])]) == 0
    assert asked == [("pipe-test", BuildOrder(graph.shas[graph.bad], "toy"), 2, "bed")]
    out = capsys.readouterr().out
    if as_json:
        runs = json.loads(out)["runs"]
        assert [(one["warmup"], one["values"]["real"], one["flags"]) for one in runs] == [
            (True, 1.5, []),
            (False, 2.5, []),
            (False, 3.5, ["stall"]),
        ]
    else:
        assert out.splitlines() == [
            "run 0: real 1.5 s (warm-up)",
            "run 1: real 2.5 s",
            "run 2: real 3.5 s (stall)",
        ]
