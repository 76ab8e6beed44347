"""The result of a try: the verdict, the three kernels side by side, and what the change does to the loss."""

from __future__ import annotations

from collections.abc import Sequence

from bisector.report import phrases, statements, trials
from bisector.report.report_model import Material
from bisector.schemas.request import Attempt


def lines(material: Material, attempt: Attempt) -> list[str]:
    """Return the first part of a try's report, which a terminal shows alone."""
    conclusion = material.known
    verdict = phrases.ENDINGS[conclusion.ending] if material.conclusion is not None and conclusion else ""
    out = [f"Result: {verdict}" if verdict else f"No conclusion yet: {material.status}.", ""]
    for title, rows in tables(material, attempt):
        out += [*(phrases.heading(title) if title else ()), *phrases.pairs(rows)]
    if rests := statements.why_it_rests(material):
        out += ["", *phrases.wrap(rests)]
    if conclusion is not None:
        out += ["", *phrases.wrap(conclusion.summary)]
        if conclusion.warnings:
            out += ["", "Warnings:", *phrases.bullets(conclusion.warnings)]
    return out


def tables(material: Material, attempt: Attempt) -> list[tuple[str, dict[str, str]]]:
    """Return the kernels, their levels and the effects: a title for each table, the first without."""
    conclusion = material.known
    names = ("parent", "culprit" if attempt.unpatched == attempt.culprit else "unpatched", "tried")
    rows = {name: material.label(index) for index, name in enumerate(names)}
    rows["of"] = f"{attempt.of}, culprit {attempt.culprit[:12]}"
    out = [("", rows)]
    metric = material.goal.metric
    out += _levels(material, names)
    if conclusion is not None and conclusion.mending is not None:
        found = conclusion.mending
        effects = {
            f"{names[0]} to {names[1]}": phrases.effect(found.loss, metric),
            f"{names[1]} to {names[2]}": phrases.effect(found.gain, metric),
            f"{names[0]} to {names[2]}": phrases.effect(found.rest, metric),
            "of the loss gone": found.gone(),
        }
        out.append(("What the change does", effects))
    return out


def _levels(material: Material, names: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
    """Return the means of the kernels, a table for each testbed that has measured one of them.

    The effects weigh testbeds by their noise, so that a mean over them contradicts the effects.
    """
    metric, out = material.goal.metric, []
    beds = sorted({visit.testbed for visit in material.state.visits})
    for bed in beds:
        found = {n: v for i, n in enumerate(names) if (v := trials.level(material, i, bed)) is not None}
        if found:
            largest = max(found.values(), key=abs)
            where = f" on {bed}" if len(beds) > 1 else ""
            out.append(
                (
                    f"{metric.name}, mean{material.pattern.words} of each{where}",
                    {n: f"{phrases.number(v, largest)} {metric.unit}" for n, v in found.items()},
                )
            )
    return out
