"""The sections of a page that hold drawings: each is what the template shows, None without data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bisector.model.commit_graph import short_name
from bisector.model.decisions import Ending, Interval
from bisector.report import phrases, statements
from bisector.report.html import (
    commit_axis,
    distribution_chart,
    effect_chart,
    level_chart,
    posterior_chart,
    sample_chart,
)
from bisector.report.html.measured_boots import MeasuredBoot
from bisector.report.html.measured_boots import levels as commit_levels
from bisector.report.report_model import Material
from bisector.report.sections import level_curve, testbed_verdicts
from bisector.report.trials import mean_of_boots, scales


def levels(material: Material, boots: Sequence[MeasuredBoot]) -> dict[str, Any] | None:
    """Return the level of each commit, as a drawing and a table; None without samples."""
    found = commit_levels(boots, material.goal.alpha)
    if not found:
        return None
    reference = max((abs(one.mean) for one in found), default=1.0)
    ends = {material.graph.good: material.goal.terms.old, material.graph.bad: material.goal.terms.new}
    marks = commit_axis.marks(material)
    return {
        "chart": level_chart.render(material, found),
        "legend": level_chart.legend(material, found),
        "interval": f"{1 - material.goal.alpha:.0%}",
        "known": any(one.interval for one in found),
        "scaled": _scaled(material),
        "levelled": material.pattern.words,
        "rows": [
            (
                material.label(one.commit),
                ends.get(one.commit, "") or (marks[one.commit].word if one.commit in marks else ""),
                phrases.number(one.mean, reference),
                "" if one.interval is None else _between(one.interval, reference),
                one.boots,
                one.samples,
            )
            for one in found
        ],
    }


def _between(value: Interval, reference: float) -> str:
    return f"{phrases.number(value.low, reference)} .. {phrases.number(value.high, reference)}"


def _scaled(material: Material) -> bool:
    return any(factor != 1.0 for factor in scales(material).values())


def posterior(material: Material) -> dict[str, Any] | None:
    """Return how probable each commit was at each decision; None where no decision knew."""
    found = posterior_chart.rows(material)
    return {"chart": posterior_chart.render(material, found), "rows": len(found)} if found else None


def samples(material: Material, boots: Sequence[MeasuredBoot]) -> dict[str, Any] | None:
    """Return every run; None without any."""
    if not boots:
        return None
    return {
        "chart": sample_chart.render(material, boots),
        "kinds": [kind for kind, _ in sample_chart.places(material, boots)],
        "terms": material.goal.terms,
        "scaled": _scaled(material),
    }


def before_after(material: Material, boots: Sequence[MeasuredBoot]) -> dict[str, Any] | None:
    """Return the distribution of the first culprit and its parent, else of the two ends."""
    pairs = [(one.parents[0], one.commits[0]) for one in material.single_culprits if one.parents]
    before, after = pairs[0] if pairs else (material.graph.good, material.graph.bad)
    old, new = ([b.levelled for b in boots if b.commit == end and b.counts] for end in (before, after))
    if not old or not new:
        return None
    metric, terms = material.goal.metric, material.goal.terms
    roles = (terms.parent, terms.one) if pairs else (terms.old, terms.new)
    names = (
        f"{roles[0]} {short_name(material.commit(before).sha)}",
        f"{roles[1]} {short_name(material.commit(after).sha)}",
    )
    return {
        "chart": distribution_chart.render(names, (old, new), f"{metric.name} in {metric.unit}"),
        "names": names,
        "change": phrases.change(mean_of_boots(old), mean_of_boots(new), metric),
        "levelled": material.pattern.words,
    }


def adding_up(material: Material) -> dict[str, Any] | None:
    """Return the effects that add up; None where the ends were not compared."""
    conclusion = material.conclusion
    if conclusion is None or conclusion.total is None:
        return None
    terms = material.goal.terms
    rows: list[tuple[str, Interval, str]] = [(f"{terms.old} to {terms.new}", conclusion.total, "")]
    for finding in statements.counted_parts(conclusion):
        rows.append((statements.part_name(material, finding), finding.effect, "new"))
    if conclusion.rest is not None and len(rows) > 1:  # else it is the whole change
        rows.append(("unexplained", conclusion.rest, "old"))
    size = material.goal.metric.threshold
    threshold = size.value if size.relative else None
    return {
        "chart": effect_chart.render("sum", "How it adds up", rows, threshold),
        "shows_threshold": effect_chart.shows_threshold(rows, threshold),
        "rows": [(name, phrases.effect(value, material.goal.metric)) for name, value, _ in rows],
        "sentence": statements.explained(material, conclusion),
        "levels": [(material.label(i), phrases.effect(x, material.goal.metric)) for i, x in conclusion.levels]
        if conclusion.ending is Ending.SPREAD
        else [],
        "of_levels": level_curve.NOTE,
    }


def testbeds(material: Material) -> dict[str, Any] | None:
    """Return what each testbed shows; None for one testbed."""
    tables = []
    for number, (before, after, effects) in enumerate(testbed_verdicts.found(material), start=1):
        title = testbed_verdicts.compared(material, before, after)
        rows = [(one.testbed, one.effect, "new" if one.shows == "reproduced" else "") for one in effects.each]
        tables.append(
            {
                "title": title,
                "chart": effect_chart.render(f"testbeds-{number}", title, rows),
                "rows": [(one.testbed, testbed_verdicts.row(material, one)) for one in effects.each],
                "sentence": testbed_verdicts.agreement(material, effects),
                "disagree": effects.disagree,
            }
        )
    aside = testbed_verdicts.set_aside(material)
    return {"tables": tables, "aside": aside} if tables or aside else None
