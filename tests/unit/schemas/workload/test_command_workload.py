"""Commands of `--run`: which metric decides, what is read of the output, what is refused."""

from __future__ import annotations

import pytest

from bisector.adapters.agent.payload import metric_specs
from bisector.adapters.parsers.workload_output import OutputError, parse
from bisector.app.accept import goal_of, workload_of
from bisector.errors import RequestError
from bisector.schemas.request import Request
from bisector.schemas.workload.command_workload import command_workload


def read(metric: str, printed: str) -> float:
    manifest = command_workload("./bench", metric, higher_is_better=True).manifest
    return parse(manifest.parse, printed, metric_specs(manifest))[metric]


def test_without_a_metric_the_time_decides() -> None:
    for metric in (None, "time"):
        workload = command_workload("make -j4\necho done", metric, higher_is_better=False)
        found = workload.metric(metric)
        assert (found.name, found.unit, found.better, found.threshold.value) == ("time", "s", "lower", 0.05)
        assert workload.manifest.parse == "elapsed"
        assert workload.script == "#!/bin/sh\nmake -j4\necho done\n"


@pytest.mark.parametrize(
    "line", ["rate: 12.5", "rate=12.5 B/s", "  rate 1.25e1", "rate : +12.5 1/s ", "rate 12.5 %"]
)
def test_a_named_number_is_read_whatever_its_unit(line: str) -> None:
    assert read("rate", f"rates: 3\nrate: 1\nthe rate 7\nrate12 8\n{line}\nrate5 9\n") == 12.5
    assert command_workload("x", "rate", higher_is_better=True).metric("rate").better == "higher"


def test_a_number_on_a_line_of_its_own() -> None:
    assert read("number", "begin 5\n 12.5 \nend: 7\n") == 12.5
    assert read("number", "3 ops/s\n") == 3


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("950 us", 0.00095),
        ("1.2 ms", 0.0012),
        ("1.2 (ms)", 0.0012),
        ("950 KiB/s", 950 * 1024),
        ("1.5 MiB/s", 1.5 * 1024**2),
        ("2.5 GB/s", 2.5e9),
        ("12 k", 12e3),
        ("12 Kops/s", 12e3),
        ("12 ops/ms", 12e3),
        ("12 widgets", 12.0),
    ],
)
def test_a_number_is_converted_from_the_unit_that_a_program_chose_for_it(printed: str, value: float) -> None:
    assert read("rate", f"rate: {printed}\n") == value


@pytest.mark.parametrize(
    ("threshold", "printed", "value"),
    [
        ("1 ms", "950 us", 0.95),
        ("1 ms", "12.5", 12.5),
        ("5 widgets", "12 widgets", 12.0),
        ("5%", "950 us", 0.00095),
        ("5 %", "950 us", 0.00095),
    ],
)
def test_a_threshold_with_a_unit_says_the_unit_of_the_number(
    threshold: str, printed: str, value: float
) -> None:
    request = Request(repo="/r", good="a", bad="b", run="./bench", metric="rate", threshold=threshold)
    workload = workload_of(request)
    manifest = workload.manifest
    assert parse(manifest.parse, f"rate: {printed}\n", metric_specs(manifest))["rate"] == value
    found = goal_of(request, workload, "wall").metric
    assert found.threshold.relative == ("%" in threshold)
    assert found.unit == ("units" if found.threshold.relative else threshold.split()[1])


@pytest.mark.parametrize("printed", ["5 MB/s", "5 %", "5 widgets"])
def test_a_number_that_is_no_amount_of_the_thresholds_unit_is_refused(printed: str) -> None:
    request = Request(repo="/r", good="a", bad="b", run="./bench", metric="rate", threshold="1 ms")
    manifest = workload_of(request).manifest
    with pytest.raises(OutputError, match="which is no amount of 'ms'"):
        parse(manifest.parse, f"rate: {printed}\n", metric_specs(manifest))


@pytest.mark.parametrize(
    ("threshold", "words"), [("1", "has no unit"), ("0 ms", "above zero"), ("x", "not a number")]
)
def test_a_threshold_that_is_none_is_refused(threshold: str, words: str) -> None:
    request = Request(repo="/r", good="a", bad="b", run="./bench", metric="rate", threshold=threshold)
    with pytest.raises(RequestError, match=words):
        goal_of(request, workload_of(request), "wall")


def test_a_unit_that_makes_a_number_too_large_is_a_failure() -> None:
    with pytest.raises(OutputError, match="larger than"):
        read("rate", "rate: 1e100 GB\n")


@pytest.mark.parametrize(
    "printed", ["", "rate: fast\n", "rate: 1 2\n", "ratex: 3\n", "rate: 12 345k\n", "rate: 12 ,5\n"]
)
def test_output_without_the_number_is_a_failure(printed: str) -> None:
    with pytest.raises(OutputError, match="has no metric 'rate'"):
        read("rate", printed)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("perf bench sched pipe", "run-perf"),
        ("/usr/bin/Time.x -p", "run-time-x"),
        ("$X", "run-x"),
        ("%", "run-command"),
    ],
)
def test_it_is_called_by_its_first_word(command: str, name: str) -> None:
    assert command_workload(command, None, higher_is_better=False).name == name


def test_a_time_is_better_when_it_is_lower() -> None:
    with pytest.raises(RequestError, match="--higher-is-better") as caught:
        command_workload("x", None, higher_is_better=True)
    assert "--metric NAME" in caught.value.cure


@pytest.mark.parametrize("name", ["LL-misses", "kernel-instructions", "instructions.schedule"])
def test_a_counter_is_counted_and_not_looked_for_in_the_output(name: str) -> None:
    request = Request(repo="/r", good="a", bad="b", run="make -j4", metric=name)
    workload = workload_of(request)
    assert workload.metric(name, "instructions").better == "lower"
    assert workload.needed_counters() == (name,)
    assert workload.manifest.parse == "elapsed" and workload.script.endswith("make -j4\n")
    with pytest.raises(RequestError, match="cannot decide under the clock 'wall'") as refused:
        workload.metric(name, "wall")
    assert "only emulated guests count it" in refused.value.cure
    with pytest.raises(RequestError, match=f"--higher-is-better: .* '{name}' .* is better when it is lower"):
        workload_of(request.model_copy(update={"higher_is_better": True}))


def test_a_number_that_a_command_prints_is_read_beside_what_is_counted() -> None:
    request = Request(repo="/r", good="a", bad="b", run="./bench", metric="rate", monitors=("counters",))
    workload = workload_of(request)
    assert workload.manifest.parse == "regex" and "instructions" in workload.manifest.counted()
    assert workload.needed_counters() == ()


def test_a_metric_needs_a_name_that_can_be_printed() -> None:
    with pytest.raises(RequestError, match="--metric 'a b' is not the name"):
        command_workload("x", "a b", higher_is_better=False)
