"""The JSON values of a bisection in `list`, `status` and `queue` (docs/json.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bisector.app.operations.operations import Values
from bisector.linux.boot_remarks import console_trouble
from bisector.model.commit_graph import short_name
from bisector.model.decisions import EXIT_CODES, FIXED, FOUND, Measure
from bisector.model.stored_bisection import workload_name
from bisector.utc_time import bare_minute

if TYPE_CHECKING:
    from bisector.app.execution.queue_state import QueueEntry
    from bisector.model.stored_bisection import Summary
    from bisector.report.report_model import Material


def _told_by_people(one: Summary | Material) -> Values:
    action = one.action
    return {
        "priority": one.priority,
        "owner": one.owner,
        "last_action": None
        if action is None
        else {"what": action.what, "by": action.by, "why": action.why, "at": action.at},
    }


def list_row(summary: Summary, status: str) -> Values:
    """Return a row of `list`."""
    ending, shas = summary.ending, [short_name(sha) for sha in summary.culprits]
    found = ""
    if ending is not None:
        found = f"{ending.value} {' '.join(shas[:3])}{' ...' if len(shas) > 3 else ''}".strip()
        if ending in FOUND and not shas:  # what is proven changes the metric the other way
            found = "a loss, no fix" if ending in FIXED else "a gain, no culprit"
    return {
        "id": summary.id,
        "status": status,
        "started": bare_minute(summary.created),
        "workload": workload_name(summary.workload),
        "good": summary.good,
        "bad": summary.bad,
        "result": found,
        "exit_code": EXIT_CODES[ending] if ending is not None else None,
        **_told_by_people(summary),
    }


def status_values(material: Material) -> Values:
    """Return what `status` prints."""
    from bisector.report import trials

    last = material.decisions[-1][1] if material.decisions else None
    doing = last if material.status == "running" and isinstance(last, Measure) else None
    return {
        "id": material.id,
        "status": material.status,
        "candidates": sum(material.graph.candidate),
        "tested": len({t.booted.commit for t in material.trials}),
        "unit": material.goal.unit,
        "attempt": material.attempt is not None,
        "consoles": _silent_consoles(material),
        "untestable": len(material.state.untestable),
        "costs": trials.costs(material),
        "doing": f"{doing.purpose}: {material.label(doing.commit)}" if doing else "",
        "reason": doing.reason if doing else "",
        "result": _result(material),
        "exit_code": EXIT_CODES[material.conclusion.ending] if material.conclusion else None,
        **_told_by_people(material),
    }


def _silent_consoles(material: Material) -> Values:
    """Return what is wrong with the consoles of testbeds, by their last boots."""
    last = {trial.booted.testbed: trial.booted.facts for trial in material.trials if trial.booted.ok}
    return {testbed: words for testbed in last for words in console_trouble(last[testbed]).values()}


def _result(material: Material) -> str:
    """Return the conclusion in one line; empty while there is none."""
    from bisector.report import statements

    conclusion = material.conclusion
    if conclusion is None:
        return ""
    names = "; ".join(
        ", ".join(material.label(i) for i in f.commits[:3]) + (" ..." if len(f.commits) > 3 else "")
        for f in conclusion.culprits or conclusion.large
    )
    return f"{statements.result(material, conclusion).lower()}{': ' if names else ''}{names}"


def queue_row(place: int, entry: QueueEntry) -> Values:
    """Return a row of `queue`. place: counted from 1."""
    summary = entry.summary
    return {
        "place": place,
        "id": summary.id,
        "status": entry.status,
        "priority": summary.priority,
        "owner": summary.owner,
        "created": summary.created,
        "workload": summary.workload,
        "good": summary.good,
        "bad": summary.bad,
        "testbeds": list(summary.testbeds),
        "measures_on": list(entry.measures_on),
        "prepares_on": list(entry.prepares_on),
        "builds": entry.status == "running" and summary.progress.building,
        "waits_for": dict(entry.waits_for),
        "unusable": dict(entry.unusable),
        "capped": entry.capped,
        "boots": summary.progress.boots,
        "left_seconds": entry.left,
        "expected_begin": entry.begins,
        "expected_end": entry.ends,
    }
