"""Where the ends do not differ by what decides, the report names the functions that do."""

from __future__ import annotations

import dataclasses

import pytest

from bisector.model.decisions import Conclusion, Ending, Interval
from bisector.model.facts import MonitorResult, MonitorValue
from bisector.model.goal import Find, Threshold
from bisector.model.records import Left
from bisector.report import json_report, text
from bisector.report.html import bisection_page
from bisector.report.profiles import exact_table
from bisector.report.report_model import Material
from bisector.report.sections import end_functions
from bisector.schemas.report_document import CountedFunctions
from tests.support.report_material import demo

RELATIVE = Threshold(0.05)
BEFORE = {"copy": 940.0, "walk": 60.0}


def counted(functions: dict[str, float]) -> MonitorResult:
    seen = tuple(MonitorValue(name, value, "instructions") for name, value in functions.items())
    return MonitorResult("counters", "/c", seen, unasked=True)


def flat(text: str) -> str:
    return " ".join(text.split())


def material(
    after: dict[str, float] | None,
    threshold: Threshold = RELATIVE,
    ending: Ending = Ending.NOT_REPRODUCED,
    find: Find = "regression",
    before: dict[str, float] = BEFORE,
) -> Material:
    found = demo()
    boots = {visit.commit: visit.boot for visit in reversed(found.state.boots)}
    ends = [(found.graph.good, before), (found.graph.bad, after)]
    left = [(900 + c, Left(boots[c], monitors=(counted(f),))) for c, f in ends if f is not None]
    metric = dataclasses.replace(found.goal.metric, threshold=threshold)
    return dataclasses.replace(
        found,
        records=[*found.records, *left],
        goal=dataclasses.replace(found.goal, metric=metric, find=find),
        request={**found.request, "metric": "real", "threshold": "5%", "find": find},
        conclusion=Conclusion(ending, "They do not differ.", total=Interval(-0.002, -0.001, 0.0)),
    )


def test_functions_that_would_decide_are_named_with_both_numbers_and_a_command() -> None:
    found = material({"copy": 890.0, "walk": 109.0, "new": 1.0})
    said = text.render(found)
    assert "Functions that differ between the ends" in said
    lines = [line.split() for line in said.splitlines()]
    assert ["copy", "940", "890", "-50", "-5.00%"] in lines
    assert ["walk", "60", "109", "+49", "+4.90%"] in lines
    assert ["new", "0", "1", "+1", "+0.10%"] in lines
    assert "Only the first changes by at least 5% of all instructions, the threshold; the 2 behind" in flat(
        said
    )
    names = [found.commit(index).sha[:12] for index in (found.graph.good, found.graph.bad)]
    assert f"perfbisect profile {found.id}:{names[0]} {found.id}:{names[1]}" in said
    assert "What the monitors saw" not in said, "nobody asked for one"
    told = dataclasses.replace(found, work=("message", 10))
    assert "Of +0 instructions a run, +0 a message" in flat(text.render(told))
    page = bisection_page.render(found)
    assert "Functions that differ between the ends" in page
    assert ">walk<" in page and "the 2 behind by less." in flat(page)
    reported = json_report.render(found)
    functions = CountedFunctions.model_validate(reported["end_functions"]).functions
    assert [one.name for one in functions] == ["copy"]
    assert reported["monitors"] == []


@pytest.mark.parametrize(
    ("after", "threshold", "ending"),
    [
        ({"copy": 891.0, "walk": 109.0}, RELATIVE, Ending.NOT_REPRODUCED),
        (BEFORE, RELATIVE, Ending.NOT_REPRODUCED),
        (None, RELATIVE, Ending.NOT_REPRODUCED),
        ({"copy": 931.0, "walk": 69.0}, Threshold(5.0, relative=False), Ending.NOT_REPRODUCED),
        ({"copy": 100.0, "walk": 900.0}, RELATIVE, Ending.CULPRIT),
    ],
)
def test_what_differs_by_less_or_was_not_counted_or_has_a_culprit_is_not_named(
    after: dict[str, float] | None, threshold: Threshold, ending: Ending
) -> None:
    found = material(after, threshold, ending)
    assert end_functions.lines(found) == []
    assert end_functions.render(found) is None


def test_twelve_functions_are_listed_the_rest_is_one_row_and_the_sum_is_whole() -> None:
    after = {"copy": 870.0, "walk": 120.0, **{f"small_{n:02}": float(n) for n in range(1, 21)}}
    found = material(after)
    both, differ = end_functions.find(found) or pytest.fail("nothing differs")
    assert differ == 2
    rows = [line.split() for line in exact_table.table(both, end_functions.SHOWN)[1:]]
    assert " ".join(rows[-2]) in flat(text.render(found))
    changes = {line[0]: int(line[-2].replace(",", "")) for line in rows}
    assert list(changes)[:3] == ["copy", "walk", "small_20"]
    assert len(changes) == 14
    assert changes["10"] == sum(range(1, 11)), "10 others"
    assert sum(changes.values()) - changes["all"] == changes["all"] == both.effect
    assert "Only the first 2 change by at least 5%" in flat("\n".join(end_functions.lines(found)))


def test_nothing_is_said_of_a_threshold_where_all_that_is_listed_reaches_it() -> None:
    said = end_functions.lines(material({"copy": 870.0, "walk": 120.0}))
    assert "Only the first" not in flat("\n".join(said))
    one = end_functions.lines(material({"copy": 930.0, "walk": 69.0}, Threshold(5.0, relative=False)))
    assert "Only the first changes by at least 1% of all instructions; the one behind" in flat("\n".join(one))


LEVELS = {
    "copy": 940.0,
    "walk": 60.0,
    "gone": 9.0,
    "pipe-test:main": 10.0,
    "[user programs]": 10.0,
    "put": 1000.0,
}


@pytest.mark.parametrize(
    ("find", "more", "searched"),
    [
        (
            "regression",
            {"copy": 50, "walk": 40, "pipe-test:main": 30, "[user programs]": 30, "put": 9},
            ["copy", "walk"],
        ),
        ("regression", {"copy": -50, "walk": 40, "new": 30}, ["walk"]),
        ("fix", {"copy": -50, "walk": 40, "gone": -9, "put": -10}, ["copy", "put"]),
        ("regression", {"copy": -50, "walk": -40}, []),
        ("regression", {"copy": 50, "walk": 4, "gone": 3, "put": 10}, ["copy", "put", "walk"]),
    ],
)
def test_a_function_that_changed_as_is_searched_for_has_a_command(
    find: Find, more: dict[str, float], searched: list[str]
) -> None:
    after = {name: LEVELS.get(name, 0.0) + more.get(name, 0.0) for name in (*LEVELS, *more)}
    found = material(after, Threshold(0.02), find=find, before=LEVELS)
    said = text.render(found)
    offered = [line.split() for line in said.splitlines() if "--metric instructions." in line]
    assert [words[words.index("--metric") + 1] for words in offered] == [
        f"instructions.{one}" for one in searched
    ]
    assert all(words[:2] == ["perfbisect", "start"] and "--threshold" not in words for words in offered)
    assert (
        f"To search by what one of them executes {'more' if find == 'regression' else 'less'}:" in flat(said)
    ) == bool(searched)
    reported = CountedFunctions.model_validate(json_report.render(found)["end_functions"]).commands
    assert reported == {name: " ".join(words) for name, words in zip(searched, offered, strict=True)}
    assert all(command in bisection_page.render(found) for command in reported.values())


def test_a_threshold_in_a_unit_counts_as_one_in_a_hundred() -> None:
    found = material({"copy": 930.0, "walk": 70.0}, Threshold(5.0, relative=False))
    assert end_functions.find(found) is not None
