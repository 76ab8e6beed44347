"""Where the deciding metric does not differ, the report names those that do, and how to search by them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from bisector.errors import RequestError
from bisector.model.decisions import Conclusion, Ending, Interval
from bisector.model.goal import Find, Metric, TestbedClock, Threshold
from bisector.model.records import Booted, Left, Ran, Record
from bisector.report import json_report, text
from bisector.report.html import bisection_page
from bisector.report.report_model import Material
from bisector.report.sections import other_metrics
from bisector.schemas.report_document import OtherMetric
from bisector.schemas.workload.workload import Workload, load_workload
from tests.support.report_material import demo

METRICS = {
    "real": Metric("real", "s", "lower", Threshold(0.05)),
    "LL-misses": Metric("LL-misses", "misses", "lower", Threshold(0.01)),
    "L2-misses": Metric("L2-misses", "misses", "lower", Threshold(0.01)),
    "L1d-misses": Metric("L1d-misses", "misses", "lower", Threshold(0.01)),
    "branch-misses": Metric("branch-misses", "misses", "lower", Threshold(0.01)),
    "instructions": Metric("instructions", "instructions", "lower", Threshold(0.01)),
    "rate": Metric("rate", "1/s", "higher", Threshold(0.05)),
    "size": Metric("size", "kB", "lower", Threshold(10.0, relative=False)),
}


def material(
    changes: dict[str, float],
    ending: Ending = Ending.NOT_REPRODUCED,
    level: float = 100.0,
    find: Find = "regression",
) -> Material:
    """Return the demo with other metrics, each changing by so many hundreds from the good end's level."""
    found = demo()
    ends = {visit.boot: visit.commit for visit in found.state.boots}
    records = []
    for number, record in found.records:
        if isinstance(record, Ran):
            bad = ends.get(record.boot) == found.graph.bad
            more = {name: level + (100.0 * by if bad else 0.0) for name, by in changes.items()}
            record = dataclasses.replace(record, values={**record.values, **more})
        records.append((number, record))
    conclusion = Conclusion(ending, "Bad differs from good by -0.1%.", total=Interval(-0.002, -0.001, 0.0))
    return dataclasses.replace(
        found,
        records=records,
        conclusion=conclusion,
        metrics=METRICS,
        modelled="a Skylake",
        goal=dataclasses.replace(found.goal, find=find),
        request={**found.request, "metric": "real", "threshold": "5%", "find": find},
    )


def on_more_testbeds(found: Material, *testbeds: str) -> Material:
    """Return the same with each boot once more on each of these testbeds."""
    records = list(found.records)
    for k, testbed in enumerate(testbeds, 1):
        for number, record in found.records:
            if isinstance(record, Ran | Left):
                record = dataclasses.replace(record, boot=f"{testbed}-{record.boot}")
            elif isinstance(record, Booted):
                record = dataclasses.replace(record, boot=f"{testbed}-{record.boot}", testbed=testbed)
            else:
                continue
            records.append((1000 * k + number, record))
    return dataclasses.replace(found, records=records)


def test_another_metric_that_differs_is_named_with_both_numbers_and_a_command() -> None:
    found = material({"LL-misses": 0.25})
    said = " ".join(text.render(found).split())
    assert "LL-misses 100 125 misses +25.00%" in said
    assert "real decided and is not worse by its threshold." in said
    assert "to search by what is worse:" in said
    (command,) = other_metrics.commands(found, other_metrics.find(found))
    assert command.startswith("perfbisect start ") and "--metric LL-misses" in command
    assert f"  {command}" in text.render(found).splitlines()
    assert "--threshold" not in command, "it is one of the other metric's unit"
    more = dataclasses.replace(
        found, request={**found.request, "run": "x", "metric": "rate", "higher_is_better": True}
    )
    (command,) = other_metrics.commands(more, other_metrics.find(more))
    assert "--run x" in command and "--higher-is-better" not in command, "a count is better when it is lower"
    (command,) = other_metrics.commands(found, other_metrics.find(found))
    assert "Misses and cycles are a model's: a Skylake." in said
    (reported,) = json_report.render(found)["other_metrics"]
    assert (reported["values"], reported["worse"], reported["command"]) == ([100.0, 125.0], True, command)
    OtherMetric.model_validate(reported)
    assert "--metric LL-misses" in bisection_page.render(found)


def of(
    workload: Workload, changes: dict[str, float], clock: TestbedClock, metric: str | None = None
) -> Material:
    """Return the same of a real workload, whose metric changes nothing."""
    found = material(changes)
    return dataclasses.replace(
        found,
        goal=dataclasses.replace(found.goal, metric=workload.metric(metric, clock), clock=clock),
        metrics={one.name: one.metric() for one in workload.manifest.all_metrics()},
        unable=workload.unable(clock),
        request={**found.request, "workload": workload.name, "metric": metric},
    )


@pytest.mark.parametrize(
    ("clock", "able", "unable", "why"),
    [
        ("instructions", "cpu_per_io", "read_p50", "(read_p50 is of the wall clock: measure on a machine"),
        ("wall", "read_p99", "ticks_per_io", "(ticks_per_io is of the clock that counts instructions:"),
    ],
)
def test_only_what_can_decide_under_the_clock_has_a_command(
    clock: TestbedClock, able: str, unable: str, why: str
) -> None:
    workload = load_workload("db-aio")
    found = of(workload, {able: 0.25, unable: 0.5}, clock)
    others = other_metrics.find(found)
    assert [one.metric.name for one in others] == [unable, able]
    (command,) = other_metrics.commands(found, others)
    assert f"--metric {able} " in command
    assert workload.with_counter(able).metric(able, clock).name == able
    with pytest.raises(RequestError, match="cannot decide under the clock"):
        workload.with_counter(unable).metric(unable, clock)
    said = " ".join(text.render(found).split())
    assert f"to search by what is worse: {command} {why}" in said and said.count("(read_p50") < 2
    assert [one["command"] for one in json_report.render(found)["other_metrics"]] == ["", command]
    assert why in bisection_page.render(found) and command in bisection_page.render(found)


def test_where_nothing_that_is_worse_can_decide_no_command_is_announced() -> None:
    found = of(load_workload("db-aio"), {"read_p50": 0.25}, "instructions")
    said = " ".join(text.render(found).split())
    assert "what is worse cannot decide here. (read_p50 is of the wall clock" in said
    assert other_metrics.commands(found, other_metrics.find(found)) == []
    found = of(load_workload("db-aio"), {"read_p50": -0.25}, "instructions")
    assert other_metrics.without_command(found, other_metrics.find(found)) == []


def test_a_metric_of_one_point_of_a_matrix_has_a_command() -> None:
    workload = load_workload("cfs-bandwidth/small")
    name = "sys[workload=W2,limit=unconstrained]"
    found = of(workload, {name: 0.25}, "instructions")
    assert name not in workload.unable("instructions")
    (command,) = other_metrics.commands(found, other_metrics.find(found))
    assert f"--metric '{name}' " in command
    assert workload.with_counter(name).metric(name, "instructions").name == name


@pytest.mark.parametrize(
    ("changes", "worse"),
    [
        ({"LL-misses": 0.25}, True),
        ({"LL-misses": -0.25}, False),
        ({"rate": -0.1}, True),
        ({"rate": 0.1}, False),
        ({"size": 0.2}, True),
    ],
)
def test_what_is_worse_depends_on_the_metric(changes: dict[str, float], worse: bool) -> None:
    found = other_metrics.find(material(changes))
    assert [one.worse for one in found] == [worse]
    assert len(other_metrics.commands(material(changes), found)) == worse


@pytest.mark.parametrize(
    ("changes", "said", "end"),
    [
        (
            {"LL-misses": 0.25},
            "This metric of the same runs differs by its own,",
            "to search by what is worse:",
        ),
        ({"rate": 0.25}, "This metric of the same runs differs by its own,", "it is not worse."),
        (
            {"rate": 0.25, "size": -0.25},
            "These metrics of the same runs differ by their own,",
            "none of them is",
        ),
    ],
)
def test_one_metric_is_not_called_several(changes: dict[str, float], said: str, end: str) -> None:
    sentence = other_metrics.sentence(on_more_testbeds(material(changes), "another"))
    assert said in sentence and end in sentence


def test_what_differs_by_less_than_its_threshold_is_not_named() -> None:
    assert other_metrics.find(material({"LL-misses": 0.005, "rate": -0.04, "size": 0.05})) == []
    assert other_metrics.lines(material({"rate": -0.04})) == []


def test_a_modelled_count_must_differ_by_more_than_its_boots_do() -> None:
    found = material({"LL-misses": 0.035, "instructions": 0.02, "L2-misses": 0.05, "L1d-misses": 0.19})
    assert [one.metric.name for one in other_metrics.find(found)] == ["L2-misses", "instructions"]
    found = material({"L1d-misses": 0.21, "branch-misses": 0.035})
    assert [one.metric.name for one in other_metrics.find(found)] == ["L1d-misses", "branch-misses"]


def test_an_ending_with_a_culprit_names_none() -> None:
    assert other_metrics.find(material({"LL-misses": 0.25}, Ending.CULPRIT)) == []
    assert "What else differs" not in text.render(demo())


def test_a_level_of_zero_is_compared_in_the_metric_s_unit() -> None:
    found = material({"size": 0.2, "LL-misses": 0.2}, level=0.0)
    (one,) = other_metrics.find(found)  # no fraction of nothing can be a threshold
    assert (one.metric.name, one.values, one.worse) == ("size", (0.0, 20.0), True)
    said = " ".join(text.render(found).split())
    assert "size 0 20 kB +20 kB more, worse" in said
    assert "inf" not in said
    (reported,) = json_report.render(found)["other_metrics"]
    assert reported["effect"]["estimate"] is None
    OtherMetric.model_validate(reported)
    assert other_metrics.find(material({"size": 0.05}, level=0.0)) == []


@pytest.mark.parametrize(("change", "sought"), [(-0.25, True), (0.25, False)])
def test_with_find_fix_what_became_better_is_searched_by(change: float, sought: bool) -> None:
    found = material({"rate": 0.06 if sought else -0.06, "LL-misses": change}, find="fix")
    said = " ".join(text.render(found).split())
    assert "METRIC BAD GOOD CHANGE" in said
    assert "real decided and is not better by its threshold." in said
    commands = other_metrics.commands(found, other_metrics.find(found))
    if sought:
        assert "to search by what is better:" in said
        assert [command.count("--metric LL-misses") for command in commands] == [1, 0]
        assert all("--find fix" in command for command in commands)
    else:
        assert "none of them is better." in said
        assert commands == []
    for reported in json_report.render(found)["other_metrics"]:
        assert (reported["worse"], bool(reported["command"])) == (not sought, sought)
    assert "is not better by its threshold" in bisection_page.render(found)


def test_each_metric_has_its_own_command_however_many_testbeds_show_it() -> None:
    found = on_more_testbeds(material({"LL-misses": 0.25, "rate": -0.1}), "another")
    reported = json_report.render(found)["other_metrics"]
    assert sorted((one["metric"]["name"], one["testbed"]) for one in reported) == [
        *(("LL-misses", testbed) for testbed in ("another", "laptop-icount")),
        *(("rate", testbed) for testbed in ("another", "laptop-icount")),
    ]
    assert all(f"--metric {one['metric']['name']}" in one["command"] for one in reported)
    assert len(other_metrics.commands(found, other_metrics.find(found))) == 2


def test_what_differs_alike_on_several_testbeds_is_in_the_order_of_their_names() -> None:
    names = [f"bed-{letter}" for letter in "gcafdbe"]
    found = other_metrics.find(on_more_testbeds(material({"LL-misses": 0.25}), *names))
    assert [one.testbed for one in found] == sorted([*names, "laptop-icount"])


def noisy(seed: int, rise: float = 0.0) -> Material:
    """Return six boots of each end with 20 metrics that scatter by 6%; the first one rises as well."""
    random, found = np.random.default_rng(seed), material({})
    records: list[Record] = []
    for k in range(12):
        end = found.graph.good if k % 2 == 0 else found.graph.bad
        values = {f"m{n}": 100.0 * float(np.exp(0.06 * random.standard_normal())) for n in range(20)}
        values["m0"] *= 1 + rise * (k % 2)
        records.append(Booted(f"b{k}", end, "machine", True, 1.0, 1e9, purpose="verify"))
        records += [Ran(f"b{k}", 0, {"real": 1.0, **values}, 1.0, 1e9), Left(f"b{k}")]
    metrics = {name: Metric(name, "s", "lower", Threshold(0.05)) for name in ("real", *values)}
    goal = dataclasses.replace(found.goal, clock="wall")
    return dataclasses.replace(found, records=list(enumerate(records)), metrics=metrics, goal=goal)


def test_of_many_metrics_that_scatter_none_is_named_for_chance() -> None:
    named = [other_metrics.find(noisy(seed)) for seed in range(30)]
    assert sum(map(bool, named)) <= 3, "with a test of each by itself it is half of the reports"
    assert [one.metric.name for one in other_metrics.find(noisy(1, rise=0.5))] == ["m0"]
