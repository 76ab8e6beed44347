"""The report, word for word: a change of its text is a change that somebody looked at.

`GOLDEN=write pytest tests/golden` writes the expected texts anew.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from bisector.model.decisions import Conclusion, Ending, Finding, Interval
from bisector.model.facts import MonitorResult, MonitorValue
from bisector.model.records import Left
from bisector.report import json_report, monitor_results, text
from bisector.report.sections import end_functions
from tests.support.command_line import parse
from tests.support.expected import check
from tests.support.report_material import demo

HERE = Path(__file__).parent


def test_the_whole_text_of_a_proven_culprit() -> None:
    check("report-culprit.txt", text.render(demo()))


def test_the_whole_text_of_a_proven_fix() -> None:
    found = demo()
    assert found.conclusion is not None
    finding = dataclasses.replace(found.conclusion.findings[0], effect=Interval(-0.1647, -0.1641, -0.1635))
    conclusion = dataclasses.replace(
        found.conclusion, ending=Ending.FIX, findings=(finding,), summary="One commit made it better."
    )
    request = {**found.request, "good": "rt-04", "bad": "rt-00", "find": "fix"}
    goal = dataclasses.replace(found.goal, find="fix")
    material = dataclasses.replace(found, conclusion=conclusion, request=request, goal=goal)
    assert "culprit" not in text.short(material).lower()
    check("report-fix.txt", text.render(material))


def test_the_json_of_a_proven_culprit() -> None:
    check("report-culprit.json", json.dumps(json_report.render(demo()), indent=2) + "\n")


@pytest.mark.parametrize(
    "conclusion",
    [
        Conclusion(
            Ending.CULPRIT_SET,
            "One of two neighbouring commits; the first does not build.",
            findings=(Finding((1, 2), Interval(0.18, 0.194, 0.21), 0.96),),
            total=Interval(0.18, 0.195, 0.21),
        ),
        Conclusion(
            Ending.NOT_REPRODUCED,
            "The ends do not differ by the threshold.",
            total=Interval(-0.004, 0.001, 0.006),
            confidence=0.97,
        ),
        Conclusion(
            Ending.CULPRITS,
            "Two commits together explain the change.",
            findings=(
                Finding(
                    (2,), Interval(0.06, 0.07, 0.08), 0.97, parents=(1,), certified=True, probability=0.93
                ),
                Finding(
                    (4,), Interval(0.10, 0.11, 0.12), 0.96, parents=(3,), certified=True, probability=1.0
                ),
            ),
            total=Interval(0.28, 0.30, 0.32),
            rest=Interval(0.05, 0.11, 0.17),
            warnings=("7 of 31 runs were flagged 'stall'.",),
        ),
        Conclusion(Ending.INCONCLUSIVE, "The budget of 2 runs does not reach for the ends."),
    ],
    ids=lambda c: c.ending.name.lower(),
)
def test_the_first_part_of_other_endings(conclusion: Conclusion) -> None:
    material = dataclasses.replace(demo(), conclusion=conclusion)
    rendered = text.render(material)
    head = rendered[: rendered.index("Every trial")]
    check(f"report-{conclusion.ending.name.lower()}.txt", head)


def test_a_budget_that_is_spent_before_all_is_explained() -> None:
    proven = Finding((2,), Interval(0.06, 0.07, 0.08), 0.97, parents=(1,), certified=True)
    crowd = Finding(
        tuple(range(1, 5)) * 10, Interval(0.03, 0.05, 0.07), 0.912, note="not proven", probability=0.912
    )
    conclusion = Conclusion(
        Ending.INCONCLUSIVE,
        "The budget of 3600 s of lab time leaves no room for the next trial.",
        findings=(proven, crowd),
        total=Interval(0.28, 0.30, 0.32),
        rest=Interval(0.20, 0.22, 0.24),
    )
    rendered = text.render(dataclasses.replace(demo(), conclusion=conclusion))
    check("report-budget.txt", rendered[: rendered.index("How to reproduce")])


def test_the_commands_of_the_report_are_valid() -> None:
    request = {
        **demo().request,
        "recipe": "x86_64-guest",
        "testbeds": ["one", "two"],
        "apply": ["/a.patch"],
        "threshold": "2%",
        "first_parent": True,
        "paths": ["kernel/sched"],
        "max_hours": 1.5,
    }
    rendered = text.render(dataclasses.replace(demo(), request=request))
    commands = [line.strip() for line in rendered.splitlines() if re.match("  perfbisect [a-z]", line)]
    assert len(commands) == 5
    for command in commands:
        parse(command)


def test_what_monitors_saw_word_for_word() -> None:
    material = demo()
    first, second = (trial.booted.boot for trial in material.trials[:2])
    counted = (MonitorValue("task-clock", 191.54, "ms", 0.0059),)
    sampled = tuple(MonitorValue(f"symbol_{i}", 20.0 - i, "%") for i in range(14))
    results = {
        first: (
            MonitorResult("perf-stat", "/b/perf-stat", counted, ("cycles: not supported",)),
            MonitorResult("perf-record", "/b/perf-record", sampled),
        ),
        second: (MonitorResult("ftrace", "/c/ftrace", sampled[:1]),),
    }
    left = [(900, Left(boot, monitors=seen)) for boot, seen in results.items()]
    material = dataclasses.replace(material, records=[*material.records, *left])
    check("report-monitors.txt", "\n".join(monitor_results.section(material)) + "\n")
    assert [m["boot"] for m in json_report.render(material)["monitors"]] == [first, second]
    assert monitor_results.section(demo()) == []


def test_functions_of_ends_that_do_not_differ_word_for_word() -> None:
    few = {f"scheduler_{n:02}": 1000.0 * n for n in range(1, 15)}
    ran = {"sys_io_submit": 14_200.0}, {"sys_io_submit": 29_600.0}
    ends = {
        0: {"[user programs]": 895_000.0, "rd_make_request": 300_000.0, **few, **ran[0]},
        4: {
            "[user programs]": 895_000.0,
            "brd_make_request": 310_000.0,
            **dict.fromkeys(few, 500.0),
            **ran[1],
        },
    }
    found = demo()
    boots = {visit.commit: visit.boot for visit in reversed(found.state.boots)}
    counts = {
        commit: tuple(MonitorValue(name, value, "instructions") for name, value in one.items())
        for commit, one in ends.items()
    }
    left = [
        (900 + commit, Left(boots[commit], monitors=(MonitorResult("counters", "/c", seen, unasked=True),)))
        for commit, seen in counts.items()
    ]
    ending = Conclusion(Ending.NOT_REPRODUCED, "No.", total=Interval(-0.07, -0.065, -0.06))
    material = dataclasses.replace(found, records=[*found.records, *left], conclusion=ending)
    check("report-end-functions.txt", "\n".join(end_functions.lines(material)) + "\n")


def test_no_conclusion_yet() -> None:
    material = dataclasses.replace(demo(), conclusion=None, status="running")
    assert "No conclusion yet: running." in text.render(material)


def test_lines_fit_a_mail_except_for_commands() -> None:
    for line in text.render(demo()).splitlines():
        assert len(line) <= 78 or line.startswith(("  perfbisect", "  git")), line


def test_an_unfinished_search_tells_what_is_proven_and_no_crowd() -> None:
    done = demo()
    assert done.conclusion is not None
    crowd = Finding(tuple(range(1, 5)) * 6, Interval(0.0, 0.1, 0.2), 0.95)
    known = dataclasses.replace(
        done.conclusion, ending=Ending.INCONCLUSIVE, findings=(*done.conclusion.findings, crowd)
    )
    running = dataclasses.replace(done, status="running", conclusion=None, so_far=known)
    check("report-so-far.txt", "\n".join(text.summary(running)) + "\n")
