"""`perfbisect workload`: what it lists and shows, and a run of a commit on a testbed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bisector.app import workload_check
from bisector.app.workload_check import WorkloadFinding
from bisector.interfaces.cli import run
from bisector.schemas.workload.template import write_template


def test_list_names_every_workload_and_what_decides(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workload", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "DECIDED", "BY", "DESCRIPTION"]
    (line,) = [line for line in lines if line.startswith("pipe-test ")]
    assert line.split(maxsplit=3)[1:3] == ["real", "(s)"]
    assert run(["workload", "list", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(lines) - 1


def test_one_broken_manifest_does_not_hide_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("broken", "sound"):
        write_template(name, tmp_path)
    with (tmp_path / "broken" / "workload.yaml").open("a") as file:
        file.write("nonsense: 1\n")
    assert run(["workload", "list", "--workloads", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == ["NAME", "sound"]
    assert "broken/workload.yaml" in err and "'nonsense'" in err and "cure:" in err
    assert run(["workload", "list", "--workloads", str(tmp_path), "--json"]) == 1
    assert [one["name"] for one in json.loads(capsys.readouterr().out)] == ["sound"]


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


def test_show_names_what_is_counted_beside(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workload", "show", "db-aio"]) == 0
    shown = capsys.readouterr().out
    (line,) = [line for line in shown.splitlines() if line.strip().startswith("counted beside")]
    assert "LL-misses" in line
    assert run(["workload", "show", "pipe-test"]) == 0
    assert "counted beside" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pipe-test", "round trip: 20,000 in a run"),
        ("poundtime", "call: 2 * {calls} in each combination of the parameters"),
        ("sched-tick", "not told"),
    ],
)
def test_show_says_what_a_run_does(capsys: pytest.CaptureFixture[str], name: str, said: str) -> None:
    assert run(["workload", "show", name]) == 0
    assert f"work {said}" in " ".join(capsys.readouterr().out.split())


def test_show_of_an_unknown_name_is_a_wrong_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workload", "show", "pipe-tset"]) == 1
    assert "pipe-test" in capsys.readouterr().err


def test_check_fits_a_narrow_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [
        WorkloadFinding("threshold", "ok", "many words " * 20),
        WorkloadFinding("run", "no", "first\nsecond"),
    ]
    monkeypatch.setattr(workload_check, "check_workload", lambda *_: iter(found))
    monkeypatch.setenv("COLUMNS", "40")
    assert run(["workload", "check", "pipe-test"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert lines[0].startswith("ok    threshold: many words") and lines[1].startswith("      many ")
    assert lines[-2:] == ["no    run: first", "      second"]


def test_no_output_is_checked_of_a_workload_whose_time_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_template("timed", tmp_path)
    folder = tmp_path / "timed"
    # A program that is not here: `check` ends before a run.
    (folder / "workload.yaml").write_text(
        (folder / "workload.yaml").read_text() + "parse: elapsed\nrequires: {programs: [no-such-program]}\n"
    )
    (folder / "samples").mkdir(exist_ok=True)
    (folder / "samples" / "a.txt").write_text("what it printed\n")
    assert run(["workload", "check", str(folder)]) == 0
    assert "samples" not in capsys.readouterr().out


def test_check_says_what_its_run_does(own_folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And what it waits for, if another perfbisect measures here: it must not stand still without a word."""
    folder = write_template("mine", own_folders)
    assert run(["workload", "check", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert "starting the measuring agent" in err and "agent" not in out
