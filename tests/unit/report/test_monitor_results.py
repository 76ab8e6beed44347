"""Results of monitors as text."""

from __future__ import annotations

import dataclasses

from bisector.model.facts import MonitorResult, MonitorValue
from bisector.model.records import Left
from bisector.report import monitor_results
from tests.support.report_material import demo

COUNTED = MonitorResult(
    "perf-stat",
    "/b/perf-stat",
    (MonitorValue("cycles", 12345678.0, "", 0.0059), MonitorValue("task-clock", 191.54, "ms")),
    ("instructions: not supported",),
)


def test_numbers_errors_and_what_is_absent() -> None:
    assert monitor_results.lines(COUNTED) == [
        "  perf-stat",
        "    cycles          12,345,678   +- 0.59%",
        "    task-clock          191.54 ms",
        "    * not there: instructions: not supported",
        "    raw: /b/perf-stat",
    ]


def test_at_most_so_many_numbers() -> None:
    assert monitor_results.lines(COUNTED, 1)[2] == "    and 1 more"


def test_shares_of_time_come_before_counts_of_calls() -> None:
    value = (MonitorValue("f", 1.0),)
    both = [MonitorResult("ftrace", "/f", value), MonitorResult("perf-record", "/p", value)]
    assert monitor_results.profile_of(both) == "/p"
    assert monitor_results.profile_of(both[:1]) == "/f"
    assert monitor_results.profile_of([MonitorResult("perf-record", "/p"), COUNTED]) == ""


def test_the_section_names_boots_and_the_command_for_two_profiles() -> None:
    assert monitor_results.section(demo()) == []
    material = demo()
    profile = MonitorResult("perf-record", "/p", (MonitorValue("f", 1.0, "%"),))
    boots = {"b1": 0, "b2": 4, "b4": 3}
    left = [(900 + n, Left(boot, monitors=(profile,))) for n, boot in enumerate(boots)]
    text = monitor_results.section(dataclasses.replace(material, records=[*material.records, *left]))
    good, bad = material.graph.shas[0][:12], material.graph.shas[4][:12]
    assert f"  perfbisect profile b-1:{good} b-1:{bad}" in text  # the ends come before other commits
