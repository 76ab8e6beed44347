"""`perfbisect workload`: what it lists and shows, and a run of a commit on a testbed."""

from __future__ import annotations

import json

import pytest

from bisector.interfaces.cli import run


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
