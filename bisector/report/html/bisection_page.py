"""The page of one bisection, finished or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from bisector.model.commit_graph import short_name
from bisector.report import monitor_results, phrases, statements, trials
from bisector.report.html import (
    chart_sections,
    page_assets,
    profile_section,
    sample_chart,
    self_contained,
)
from bisector.report.html.measured_boots import measured_boots
from bisector.report.profiles import exact_calls, exact_table, explained_effect
from bisector.report.report_model import Material, Trial, named
from bisector.report.sections import (
    attempt_result,
    conditions,
    config_drift,
    end_functions,
    other_direction,
    other_metrics,
    reproduction,
)


@dataclass(frozen=True)
class Section:
    """One section: its anchor, its title, and what the template shows of it."""

    name: str
    title: str
    content: Any


@dataclass(frozen=True)
class BisectionPage:
    """The content of a bisection's page. data: for the script that zooms; None without samples."""

    material: Material
    headline: str
    lead: str
    sections: tuple[Section, ...]
    data: dict[str, Any] | None


def draw(material: Material, profiles: profile_section.TwoProfiles | None = None) -> BisectionPage:
    """Return what a page shows. profiles: of the two kernels, where a monitor recorded them."""
    boots = sample_chart.ordered(measured_boots(material))
    found = tuple(
        Section(name, title, content)
        for name, title, content in (
            ("result", "Result", _result(material)),
            ("levels", f"Level of each {material.goal.unit}", chart_sections.levels(material, boots)),
            ("posterior", "How the search narrowed down", chart_sections.posterior(material)),
            ("samples", f"Samples by {material.goal.unit} and boot", chart_sections.samples(material, boots)),
            ("before-after", "Before and after", chart_sections.before_after(material, boots)),
            ("functions", "Functions", _functions(material) or end_functions.section(material)),
            ("others", "What else differs between the ends", _others(material)),
            ("sum", "How it adds up", chart_sections.adding_up(material)),
            ("testbeds", "On each testbed", chart_sections.testbeds(material)),
            ("differences", "What differs besides code", _differences(material)),
            ("profile", "Where the time goes", profile_section.context(profiles) if profiles else None),
            ("monitors", "What the monitors saw", monitor_results.section(material)[3:]),
            ("trials", "Decisions and trials", _trials(material)),
            ("drift", "Configuration along the range", _drift(material)),
            (
                "untestable",
                statements.title_of_untestable(material),
                statements.untestable(material),
            ),
            ("user", "What the user said on the way", statements.words_of_user(material)),
            ("reproduce", "How to reproduce", _reproduce(material)),
            ("cost", "What it cost", trials.costs(material)),
            ("asked", "What was asked", conditions.request_rows(material)),
            ("where", "Where it was measured", conditions.where_rows(material)),
        )
        if content
    )
    data = sample_chart.data(material, boots) if boots else None
    return BisectionPage(material, _headline(material), _lead(material), found, data)


def render(material: Material, profiles: profile_section.TwoProfiles | None = None) -> str:
    """Return the page as one file. profiles: as in `draw`."""
    page = draw(material, profiles)
    title = f"{page.headline} - {material.id}"
    return self_contained.render("bisection.html.j2", title=title, data=page.data, page=page)


def render_sections(page: BisectionPage) -> Markup:
    """Return the sections alone, to be put into another page."""
    return page_assets.render("bisection_sections.html.j2", page=page)


def _headline(material: Material) -> str:
    return statements.headline(material).removeprefix("Result: ").rstrip(".").capitalize()


def _lead(material: Material) -> str:
    """Return the sentence below the headline: which commit, by how much; else what was asked."""
    single = material.single_culprits
    if len(single) != 1 or not single[0].certified:
        return f"{conditions.question(material)}."
    metric = material.goal.metric
    return (
        f"{material.label(single[0].commits[0])} makes {material.goal.metric.name} "
        f"{phrases.effect(single[0].effect, metric)}."
    )


def _result(material: Material) -> dict[str, Any]:
    conclusion, known = material.conclusion, material.known
    findings = [
        {
            "commits": [material.commit(i) for i in named(finding)],
            "more": len(finding.commits) - len(named(finding)),
            "rows": statements.finding_rows(material, finding),
        }
        for finding in (known.findings if known else ())
        if conclusion or named(finding)
    ]
    attempt = material.attempt
    return {
        "tables": attempt_result.tables(material, attempt) if attempt is not None else [],
        "findings": findings if attempt is None else [],
        "summary": known.summary if known else "",
        "asked": conditions.question(material),
        "warnings": known.warnings if known else (),
        "other_direction": other_direction.command(material),
        "other_words": other_direction.words(material),
    }


def _differences(material: Material) -> list[dict[str, Any]]:
    out = []
    for finding in material.conclusion.findings if material.conclusion is not None else ():
        if len(finding.commits) == 1 and finding.parents:
            found = statements.between(material, finding.parents[0], finding.commits[0])
            sha = short_name(material.commit(finding.commits[0]).sha)
            out.append(
                {
                    "title": f"{sha} and its {material.goal.terms.parent}",
                    "known": found.known,
                    "sentences": found.sentences(f"{material.goal.unit} {sha}", material.goal.unit),
                    "changes": statements.changes(found),
                    "unchanged": statements.unchanged(found),
                }
            )
    return out


def _functions(material: Material) -> list[dict[str, Any]]:
    """Return what each culprit's functions execute more, where that was counted."""
    out = []
    for finding in material.conclusion.findings if material.conclusion is not None else ():
        found = explained_effect.find(material, finding)
        if found is not None:
            shown = explained_effect.MAX_FUNCTIONS
            out.append(
                {
                    "title": explained_effect.title(material, found),
                    "caution": explained_effect.caution(material, finding, found),
                    "head": exact_table.head(found),
                    "rows": exact_table.rows(found, shown),
                    "sentence": " ".join(
                        [exact_table.sentence(found, shown, material.work), *exact_calls.sentences(found)]
                    ),
                    "command": explained_effect.command(material, found),
                    "searches": [],
                }
            )
    return out


def _others(material: Material) -> dict[str, Any] | None:
    found = other_metrics.find(material)
    if not found:
        return None
    return {
        "head": other_metrics.head(material),
        "rows": other_metrics.rows(found),
        "sentence": other_metrics.sentence(material),
        "commands": other_metrics.commands(material, found),
        "without_command": other_metrics.without_command(material, found),
    }


def _trials(material: Material) -> dict[str, Any]:
    culprits = {one.commits[0] for one in material.single_culprits}

    def row(number: int, trial: Trial) -> dict[str, Any]:
        booted = trial.booted
        return {
            "number": number,
            "label": material.label(booted.commit),
            "culprit": booted.commit in culprits,
            "where": f"{booted.purpose}, {booted.testbed}"
            + (f", layout {booted.layout}" if booted.layout else ""),
            "boot": booted.boot,
            "at": phrases.date(booted.at),
            "reason": trial.reason,
            "numbers": trials.values(trial),
            "verdict": trials.verdict(material, trial),
            "cut": trial.console_cut,
        }

    return {
        "rows": [row(number, trial) for number, trial in enumerate(material.trials, start=1)],
        "metric": f"{material.goal.metric.name} in {material.goal.metric.unit}",
        "failed": [f"{material.label(b.commit)}: {b.failure}" for b in material.builds if not b.ok],
    }


def _drift(material: Material) -> list[tuple[str, str]]:
    shas = material.graph.shas
    return [
        (
            f"CONFIG_{d.name}: {d.before} -> {d.after}",
            f"{short_name(shas[d.last])}..{short_name(shas[d.first])}, {material.goal.unit}s: {d.commits}",
        )
        for d in config_drift.find(material)
    ]


def _reproduce(material: Material) -> dict[str, Any] | None:
    if material.conclusion is None:
        return None
    single, whole = reproduction.commands(material, material.conclusion)
    return {
        "single": single,
        "whole": whole,
        "configurations": [
            (short_name(material.graph.shas[index]), config)
            for index, config in reproduction.configurations(material, material.conclusion)
        ],
    }
