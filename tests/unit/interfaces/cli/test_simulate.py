"""`perfbisect simulate` as a user calls it; what it refuses is in tests/golden/test_cli_errors.py."""

import json
from pathlib import Path

import pytest

from bisector.interfaces.cli import run

SMALL = ["simulate", "--commits", "4", "--run-noise", "0.1", "--trials", "3", "--jobs", "1"]


def test_json_holds_what_was_asked_and_what_came_out_and_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SMALL, "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["trials"] == 3
    assert first["scenario"]["threshold"] == 1.0
    assert first["success"]["of"] == 3
    assert {"mean", "p50", "p90", "p99"} == set(first["wall_time"])
    assert run([*SMALL, "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    for result in (first, again):
        del result["planner_cpu_seconds_per_decision"]
    assert first == again


def test_the_schema_is_printed_without_simulating(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "--schema", "--trials", "1000000"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert {"trials", "correct", "wrong", "success", "cost", "scenario"} <= set(schema["properties"])


def test_a_budget_too_small_for_the_ends_is_an_honest_ending(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SMALL, "--max-runs", "2"]) == 0
    out = capsys.readouterr().out
    assert "3 of 3  (within the budget)" in out
    assert "none were made" in out
    assert out.split("mean stated confidence")[1].split()[0] == "none"


def test_text_names_the_parts_of_the_cost(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(SMALL) == 0
    out = capsys.readouterr().out
    assert "right answers" in out
    assert "verify" in out


def test_one_simulation_and_costs_of_any_size_are_told_in_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """'7025300000.07025300000.0' was one word."""
    assert run([*SMALL[:-4], "--trials", "1", "--jobs", "1", "--cost", "build=1e9,boot=1e6,run=1e5"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 simulated bisection, seed 1\n")
    (row,) = [line.split() for line in out.splitlines() if line.startswith("  cost ")]
    assert [float(number) > 1e9 for number in row[1:]] == [True] * 4


def test_endings_that_are_neither_right_nor_wrong_are_counted_where_there_are_any(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of searches that found one culprit of two nothing was said: 0% right, 0% wrong, none inconclusive."""
    assert (
        run([*SMALL[:1], "--commits", "16", "--culprits", "3:3,12:3", "--max-cost", "320", *SMALL[3:]]) == 0
    )
    out = capsys.readouterr().out
    told = {
        name: int(out.split(name)[1].split()[0])
        for name in ("not all culprits found", "inconclusive", "'not reproduced'")
    }
    assert told["not all culprits found"] > 0
    assert sum(told.values()) == 3
    assert "spread over" not in out


def test_every_option_is_understood(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    samples = tmp_path / "samples.json"
    samples.write_text('{"boots": [[1.0, 1.001, 0.999], [1.002, 1.0]]}')
    real, synthetic = ["--samples", str(samples)], ["--boot-noise", "0.05", "--noise", "t3"]
    options = (
        "--culprits 2:3,last:3 --threshold 1 --build-noise 0.05 --drift walk "
        "--background 0.1 --fork-offset 0.1 --untestable 5% --broken-stretch 0 --same-binary 0.1 "
        "--cost build=2,boot=1,run=1 --alpha 0.1 --testbeds 2 --testbed-spread 0.5 --better higher --seed 3 "
        "--max-cost 10000 --max-builds 100 --max-runs 10000 --history branched"
    )
    for noise in (real, synthetic):
        assert run([*SMALL[:1], "--commits", "6", "--trials", "1", *options.split(), *noise]) == 0
        assert "1 simulated" in capsys.readouterr().out
