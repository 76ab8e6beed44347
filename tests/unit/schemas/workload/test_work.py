"""How many units of work a run does: numbers and parameters, over all combinations that it executes."""

from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from bisector.resources import resource
from bisector.schemas.workload.work import Work
from bisector.schemas.workload.workload import load_workload, workload_names


@pytest.mark.parametrize(
    ("count", "number"),
    [
        (20000, 20000),
        ("7", 7),
        ("{ios}", 500),
        ("{ios} + {logs} * 2", 514),
        ("{ios} * {logs} * {logs}", 24_500),
        ("{cpus}", None),
        ("{ios} * {none}", None),
        ("{ios} + {words}", None),
    ],
)
def test_the_number_is_told_where_there_is_one(count: object, number: int | None) -> None:
    parameters = {"ios": ("500",), "logs": ("7",), "cpus": ("4x",), "none": ("0",), "words": ("1 + 1",)}
    found = Work.model_validate({"unit": "I/O", "count": count}).in_a_run(parameters)
    assert found == (None if number is None else ("I/O", number))


def test_a_run_does_the_work_of_all_combinations() -> None:
    parameters = {"calls": ("100",), "threads": ("1", "2", "5"), "way": ("a", "b")}
    assert Work(unit="call", count="2 * {calls}").in_a_run(parameters) == ("call", 6 * 2 * 100)
    assert Work(unit="call", count="{threads} * {calls}").in_a_run(parameters) == ("call", 2 * 8 * 100)
    some = {**parameters, "threads": ("1", "2", "4x")}
    assert Work(unit="call", count="{calls}").in_a_run(some) is None, "with one CPU four threads, so no five"
    assert Work(unit="call", count="{calls}").in_a_run({**some, "threads": ("4x",)}) == ("call", 200)


@pytest.mark.parametrize(
    "wrong",
    [
        {"unit": "round trip"},
        {"unit": "round trip", "count": 0},
        {"unit": "round trip", "count": -1},
        {"unit": "round trip", "count": 1.5},
        {"unit": "round trip", "count": True},
        {"unit": "round trip", "count": "{a b}"},
        {"unit": "round trip", "count": "1 - 2"},
        {"unit": "round trip", "count": "2*3"},
        {"unit": "", "count": 1},
        {"unit": "a\nb", "count": 1},
    ],
)
def test_what_is_no_unit_of_work_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Work.model_validate(wrong)


SHIPPED = {
    "cfs-bandwidth": ("round trip", 9 * 100_000),
    "cfs-bandwidth/small": ("round trip", 9 * 5000),
    "db-aio": ("I/O", 20_000),
    "db-aio/fio": ("I/O", 10_000),
    "db-aio/postgres": ("transaction", 400),
    "hackbench": ("message", 20_000),
    "hackbench/small": ("message", 80_000),
    "perf-bench": ("round trip", 20_000),
    "pipe-test": ("round trip", 20_000),
    "pipe-test-1m": ("round trip", 1_000_000),
    "poundtime": None,  # how many numbers of threads a run tries follows the number of CPUs
    "poundtime/small": None,
    "stress-ng": ("operation", 50_000),
    "stress-ng/fork": ("operation", 300),
}
"""The others work for a time, or as a suite decides, or by sizes that are no numbers ('128m')."""


@pytest.mark.parametrize("name", workload_names())
def test_what_a_run_of_each_workload_does(name: str) -> None:
    manifest = load_workload(name).manifest
    assert (manifest.work is not None) == (name in SHIPPED)
    assert manifest.work is None or manifest.work.in_a_run(manifest.parameters) == SHIPPED[name]


def test_a_run_of_poundtime_calls_both_functions_with_each_number_of_threads() -> None:
    manifest = load_workload("poundtime/small").with_parameters({"threads": ("2", "8")}).manifest
    assert manifest.work is not None
    assert manifest.work.in_a_run(manifest.parameters) == ("call", 2 * 2 * 20_000)


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("db-aio", r"^ios: (\d+) of which"),
        ("db-aio/fio", r'"ios": (\d+)'),
        ("db-aio/postgres", r"actually processed: (\d+)/"),
        ("perf-bench", r"# Executed (\d+) pipe operations"),
        ("stress-ng", r"\] switch +(\d+) "),
        ("stress-ng/fork", r"\] fork +(\d+) "),
    ],
)
def test_programs_that_count_what_they_do_say_the_same(name: str, printed: str) -> None:
    samples = list((resource("workloads") / name / "samples").glob("guest-*.txt"))
    assert samples
    for sample in samples:
        (number,) = re.findall(printed, sample.read_text(), re.MULTILINE)
        told = SHIPPED[name]
        assert told is not None
        assert told[1] == int(number), sample.name
