"""The report for machines: one JSON object with everything that the text says, unrounded and unabridged.

Keys: schema (this form's number), id, status, exit_code, request, recipe_chosen (none was named), good, bad,
find ('regression' or 'fix'), metric, threshold, alpha, clock, ending, summary, confidence, total, rest,
findings, so_far (findings before there is a conclusion), warnings, by_testbed (what each of several shows),
set_aside (testbeds that failed), other_direction (the command that searches the other way), other_metrics
and end_functions (that differ where the deciding metric does not), modelled (the processor of a model, in
words), attempt and mending (of a try), trials, monitors, builds, drift, untestable, user, costs, host, files.
Commits are full ids; effects are relative changes (0.35: the number rises by 35%); times are seconds;
infinite and unknown numbers are null. `bisector/schemas/report_document.py` describes each key.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bisector.model.decisions import EXIT_CODES, Finding, Interval
from bisector.model.printable import finite
from bisector.model.records import Booted, Built, Discarded, RunFailed
from bisector.report import monitor_results
from bisector.report.profiles import explained_effect
from bisector.report.report_model import Material, Trial
from bisector.report.sections import (
    config_drift,
    end_functions,
    other_direction,
    other_metrics,
    testbed_verdicts,
)
from bisector.report.statements import between
from bisector.report.trials import costs, verdict
from bisector.schemas.report_document import DOCUMENT_VERSION


def render(material: Material) -> dict[str, Any]:
    """Return the whole report as JSON values."""
    found: dict[str, Any] = finite(_values(material))
    return found


def _values(material: Material) -> dict[str, Any]:
    goal, conclusion = material.goal, material.conclusion
    shas = material.graph.shas
    printed = {r.boot: r.details for _, r in material.records if isinstance(r, RunFailed)}
    return {
        "schema": DOCUMENT_VERSION,
        "id": material.id,
        "created": material.created,
        "status": material.status,
        "exit_code": EXIT_CODES[conclusion.ending] if conclusion else None,
        "request": dict(material.request),
        "recipe_chosen": material.recipe_chosen,
        goal.terms.old: shas[material.graph.good],
        goal.terms.new: shas[material.graph.bad],
        "find": goal.find,
        "candidates": sum(material.graph.candidate),
        "metric": {"name": goal.metric.name, "unit": goal.metric.unit, "better": goal.metric.better},
        "threshold": dataclasses.asdict(goal.metric.threshold),
        "alpha": goal.alpha,
        "clock": goal.clock,
        "ending": conclusion.ending.value if conclusion else None,
        "summary": conclusion.summary if conclusion else "",
        "confidence": conclusion.confidence if conclusion else None,
        "total": _interval(conclusion.total) if conclusion else None,
        "rest": _interval(conclusion.rest) if conclusion else None,
        "findings": [_finding(material, f) for f in conclusion.findings] if conclusion else [],
        "so_far": [_finding(material, f) for f in material.so_far.findings] if material.so_far else [],
        "levels": [{"commit": shas[i], **(_interval(x) or {})} for i, x in conclusion.levels]
        if conclusion
        else [],
        "warnings": list(conclusion.warnings) if conclusion else [],
        "by_testbed": testbed_verdicts.render(material),
        "set_aside": [dataclasses.asdict(one) for one in material.set_aside],
        "other_direction": other_direction.command(material),
        "other_metrics": other_metrics.render(material),
        "end_functions": end_functions.render(material),
        "modelled": material.modelled,
        "attempt": material.attempt.model_dump(mode="json") if material.attempt else None,
        "mending": dataclasses.asdict(conclusion.mending) if conclusion and conclusion.mending else None,
        "trials": [_trial(material, t, printed) for t in material.trials],
        "monitors": [
            {
                "boot": visit.boot,
                "commit": shas[visit.commit],
                "testbed": visit.testbed,
                "seen": [dataclasses.asdict(result) for result in visit.monitors],
            }
            for visit in monitor_results.watched_boots(material)
        ],
        "builds": [_build(material, build) for build in material.builds],
        "drift": config_drift.render(material),
        "untestable": {shas[i]: why for i, why in sorted(material.state.untestable.items())},
        "user": [
            dataclasses.asdict(entry)
            if isinstance(entry, Discarded)
            else {**dataclasses.asdict(entry), "commit": shas[entry.commit]}
            for entry in material.words_of_user
        ],
        "costs": costs(material),
        "host": dict(material.host),
        "files": dict(material.files),
    }


def _interval(value: Interval | None) -> dict[str, float] | None:
    return dataclasses.asdict(value) if value is not None else None


def _finding(material: Material, finding: Finding) -> dict[str, Any]:
    differences = (
        dataclasses.asdict(between(material, finding.parents[0], finding.commits[0]))
        if len(finding.commits) == 1 and finding.parents
        else None
    )
    return {
        "commits": [dataclasses.asdict(material.commit(i)) for i in finding.commits],
        "parents": [dataclasses.asdict(material.commit(i)) for i in finding.parents],
        "effect": _interval(finding.effect),
        "confidence": finding.confidence,
        "probability": finding.probability,
        "certified": finding.certified,
        "small": finding.small,
        "opposite": finding.opposite,
        "note": finding.note,
        "differences": differences,
        "functions": explained_effect.render(material, finding),
    }


def _trial(material: Material, trial: Trial, printed: Mapping[str, str]) -> dict[str, Any]:
    """printed: by workloads that failed, by their boots."""
    booted = trial.booted
    return {
        **_without(booted, "facts", "workload", "image", "console", "overhead", "details", "fresh_seed"),
        "commit": material.graph.shas[booted.commit],
        "reason": trial.reason,
        "verdict": verdict(material, trial),
        "discarded": trial.discarded,
        "failure": trial.failure,
        "console_cut": trial.console_cut,
        "overhead": booted.overhead,
        "runs": [
            {"index": i, "value": value, "flags": list(flags), "warmup": warmup}
            for i, value, flags, warmup in trial.values
        ],
        "note": _note(booted, printed.get(booted.boot)),
    }


def _note(booted: Booted, printed: str | None) -> dict[str, str]:
    """Return what a boot ran, where its console is, and what it printed last where it failed."""
    if not booted.ok:
        return {"details": booted.details}
    return {
        **({} if printed is None else {"details": printed}),
        "overhead": "" if booted.overhead is None else f"{booted.overhead:.3f}",
        "workload": booted.workload,
        "console": booted.console,
        "image": booted.image,
    }


def _build(material: Material, build: Built) -> dict[str, Any]:
    return {
        **_without(build, "details"),
        "commit": material.graph.shas[build.commit],
        "kernel": kernel(material, build.commit),
    }


def kernel(material: Material, commit: int) -> dict[str, Any]:
    """Return what is known of a commit's kernel, empty if it was not built."""
    known = material.kernels.get(commit)
    return dataclasses.asdict(known) if known is not None else {}


def _without(record: Built | Booted, *left_out: str) -> dict[str, Any]:
    """Return a record as JSON values without some of its fields."""
    return {name: value for name, value in dataclasses.asdict(record).items() if name not in left_out}
