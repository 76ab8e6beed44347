"""The last match of an expression, and numbers that one cuts in two."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.parsers.last_matches import LastMatch, last_matches


def last(text: str, pattern: str) -> LastMatch:
    return last_matches(text, {"real": pattern})["real"]


def test_the_last_match_counts_with_its_unit() -> None:
    found = last_matches(
        "took 950 us\ntook 1.2 ms\n",
        {"real": r"^took (\S+) (?P<unit>\S+)$", "least": r"took (\d+) us", "none": "cost (.)"},
    )
    assert found == {"real": LastMatch("1.2", "ms", ""), "least": LastMatch("950", "", "")}
    assert last("a b", "a(x)?").number == ""


@pytest.mark.parametrize(
    ("text", "pattern", "whole"),
    [
        ("took 123 s", r"took.*([0-9.]+) s", "123"),
        ("took 12.5 s", r"took.*([0-9.]+) s", "12.5"),
        ("took 12.5 s", r"took ([0-9]+)", "12.5"),
        ("took 9.5e-05 s", r"took ([0-9.]+)", "9.5e-05"),
        ("took 9.5e-05 s", r"took ([0-9.]+).* s", "9.5e-05"),
        ("took 9.5e-05 s", r"took ([0-9]+)", "9.5e-05"),
        ("took 9.5E+05 s", r"E\+([0-9]+)", "9.5E+05"),
        ("took 1234 s", r"took ([0-9]{2})", "1234"),
        ("took 1,234.5 s", r"took.*([0-9]+) s", "1,234.5"),
        ("took 9.5 s", r"took [0-9](.*) s", "9.5"),
        ("9.5e-05", r"([0-9.]+)", "9.5e-05"),
        ("took 1,234,567.5 s", r"took ([0-9]+)", "1,234,567"),
        ("  113,435 ops/sec", r"([0-9]+) ops/sec", "113,435"),
        ("  1,113,435 ops/sec", r"([0-9]+) ops/sec", "1,113,435"),
        ("1,234 ops, and a long line of other words behind them", r"([0-9]+) ops", "1,234"),
        ("saved -5 s", r"([0-9.]+) s", "-5"),
    ],
)
def test_a_part_of_a_number_is_told(text: str, pattern: str, whole: str) -> None:
    assert last(text, pattern).whole == whole


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("took 1.5s", r"took ([0-9.]+)"),
        ("took 1.5 s.", r"took ([0-9.]+) s"),
        ("a,1.5,234,7", r"^[^,]*,([0-9.]+)"),
        ("a,15,234", r"^a,([0-9]+),"),
        ("a,15,234", r"^a,15,([0-9]+)"),
        ("real 0m1.234s", r"m([0-9.]+)s"),
        ("range 3-15 ms", r"([0-9]+) ms"),
        ("range 3.-15 ms", r"([0-9]+) ms"),
        ("cpus 1234,567 ms", r"([0-9]+) ms"),
        ("cpus 1.5,234 ms", r"([0-9]+) ms"),
        ("saved -5 s", r"saved -?([0-9.]+)"),
        ("saved -5 s", r"saved ([-0-9.]+)"),
        ("cpu0: 12e", r"([0-9]+)e"),
        ("p99: 7", r"p99: (\d+)"),
        ("none", r"(none)"),
    ],
)
def test_a_number_of_its_own_is_taken(text: str, pattern: str) -> None:
    assert last(text, pattern).whole == ""


def test_no_module_of_the_folder_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder in which somebody works may have a file that is called as a module of Python."""
    (tmp_path / "json.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    assert last("took 5 s", r"took (\d+)").number == "5"
