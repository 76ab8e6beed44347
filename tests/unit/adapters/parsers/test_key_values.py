"""Lines 'name: value', in all their forms, and at any length."""

from __future__ import annotations

import time

import pytest

from bisector.adapters.parsers.key_values import KeyValue, of_known_key, separated

KEYS = {"real", "real time", "cpu.max", "real[n=1]"}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("real: 1.5", KeyValue("real", "1.5", "")),
        ("  real time =1.5 s ", KeyValue("real time", "1.5", "s")),
        ("real:1.5:2", KeyValue("real", "1.5:2", "")),
        ("real: = 5", KeyValue("real", "=", "5")),
        ("real[threads=4x,size=2]: 1.5 s", KeyValue("real[threads=4x,size=2]", "1.5", "s")),
        ("real[a:b] = 1.5", KeyValue("real[a:b]", "1.5", "")),
        ("std::sort: 1.5 ns", KeyValue("std::sort", "1.5", "ns")),
        ("real[threads=4 1.5", KeyValue("real[threads", "4", "1.5")),
        ("std::sort 1.5", None),
        ("real 1.5", None),
        ("real:", None),
        (": 1.5", None),
        ("real: 1 2 3", None),
        ("", None),
    ],
)
def test_a_separator_makes_a_pair(line: str, found: KeyValue | None) -> None:
    assert separated(line) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("real: 1.5 s", KeyValue("real", "1.5", "s")),
        ("real 1.5", KeyValue("real", "1.5", "")),
        ("\treal  1.5\ts\n", KeyValue("real", "1.5", "s")),
        ("real time 1.5", KeyValue("real time", "1.5", "")),
        ("real time 1.5 s", KeyValue("real time", "1.5", "s")),
        ("cpu.max=7", KeyValue("cpu.max", "7", "")),
        ("real[n=1]: 7", KeyValue("real[n=1]", "7", "")),
        ("real 12:34", KeyValue("real", "12:34", "")),
        ("real quick", KeyValue("real", "quick", "")),
        ("unreal 1.5", None),
        ("it was real 1.5", None),
        ("real", None),
        ("", None),
    ],
)
def test_a_blank_does_where_the_key_is_known(line: str, found: KeyValue | None) -> None:
    assert of_known_key(line, KEYS) == found


@pytest.mark.parametrize(
    "line",
    [" " * 1_000_000, "a " * 500_000, "real" + " " * 1_000_000 + "x y z", "[" * 1_000_000, "[a" * 500_000],
)
def test_a_long_line_takes_no_longer_than_its_length(line: str) -> None:
    started = time.process_time()
    assert of_known_key(line, KEYS) is None
    assert time.process_time() - started < 10
