"""The report as plain text, at most 78 columns where names allow it: what a person reads or mails."""

from __future__ import annotations

from bisector.model.commit_graph import short_name
from bisector.model.decisions import Conclusion, Ending, Finding
from bisector.report import monitor_results, phrases, statements, trials
from bisector.report.kernel_differences import Change
from bisector.report.profiles import explained_effect
from bisector.report.report_model import Material, named
from bisector.report.sections import (
    attempt_result,
    conditions,
    config_drift,
    end_functions,
    level_curve,
    other_direction,
    other_metrics,
    reproduction,
    testbed_verdicts,
)

MAX_PRINTED_LINES = 20
"""Lines of a list in the text; report.json has all of it."""


def render(material: Material) -> str:
    """Return the whole report."""
    out = [f"perfbisect report  {material.id}", "=" * phrases.TEXT_COLUMNS]
    out += _result(material)
    conclusion = material.conclusion
    if conclusion is not None:
        if conclusion.ending is Ending.SPREAD:
            out += level_curve.lines(material, conclusion)
        out += reproduction.lines(material, conclusion)
    out += phrases.heading("What it cost") + phrases.pairs(trials.costs(material))
    out += trials.lines(material)
    out += monitor_results.section(material)
    out += config_drift.lines(material)
    out += _user(material)
    out += _untestable(material)
    out += conditions.request(material)
    out += conditions.where(material)
    return phrases.page(out)


def short(material: Material) -> str:
    """Return the end of the terminal's output: the result, what differs besides code, how it adds up."""
    return phrases.page(_result(material))


def _result(material: Material) -> list[str]:
    if material.attempt is not None:
        return attempt_result.lines(material, material.attempt)
    out = summary(material)
    if material.conclusion is not None:
        for finding in material.conclusion.findings:
            out += _differences(material, finding)
            out += explained_effect.lines(material, finding)
        out += other_direction.lines(material)
        out += other_metrics.lines(material)
        out += end_functions.lines(material)
        out += _rest(material, material.conclusion)
    return out


def summary(material: Material) -> list[str]:
    """Return the first part: what was found, how certain, how large. A terminal shows it alone."""
    conclusion = material.conclusion
    if conclusion is None:
        asked = phrases.wrap(conditions.question(material))
        rests = statements.why_it_rests(material)
        asked += ["", *phrases.wrap(rests)] if rests else []
        return [statements.headline(material), "", *asked, *_so_far(material)]
    out = [statements.headline(material), ""]
    for finding in conclusion.findings:
        out += _finding(material, finding)
    out += phrases.wrap(conclusion.summary)
    if conclusion.warnings:
        out += ["", "Warnings:", *phrases.bullets(conclusion.warnings)]
    return out + testbed_verdicts.lines(material)


def _so_far(material: Material) -> list[str]:
    findings = material.so_far.findings if material.so_far is not None else ()
    shown = [f for f in findings if named(f)]
    out = phrases.heading("What is known so far") if shown else []
    for finding in shown:
        out += _finding(material, finding)
    return out


def _finding(material: Material, finding: Finding) -> list[str]:
    out: list[str] = []
    for index in named(finding):
        commit = material.commit(index)
        out += [f"  {commit.sha}", f"      {commit.subject}"]
        if commit.author:
            out.append(f"      {commit.author}, {phrases.date(commit.when)}")
        if commit.describe:
            out.append(f"      {commit.describe}")
    more = len(finding.commits) - len(named(finding))
    if more:
        which = f"and {more:,} more" if named(finding) else f"one of {more:,} {material.goal.unit}s"
        out.append(f"  {which}, all of them in report.json")
    out.append("")
    out += phrases.pairs(statements.finding_rows(material, finding))
    out.append("")
    return out


def _differences(material: Material, finding: Finding) -> list[str]:
    if len(finding.commits) != 1 or not finding.parents:
        return []
    found = statements.between(material, finding.parents[0], finding.commits[0])
    commit, unit = material.commit(finding.commits[0]), material.goal.unit
    out = phrases.heading(
        f"What differs besides code: {short_name(commit.sha)} and its {material.goal.terms.parent}"
    )
    if not found.known:
        return [*out, "  Unknown: one of the two kernels' configurations was not recorded."]
    out += phrases.bullets(found.sentences(f"{unit} {short_name(commit.sha)}", unit))
    for title, changes in statements.changes(found):
        out += _changes(title, changes)
    for sentence in statements.unchanged(found):
        out += phrases.wrap(sentence)
    return out


def _changes(title: str, changes: tuple[Change, ...]) -> list[str]:
    out = [f"  {title}:"]
    for name, before, after in changes[:MAX_PRINTED_LINES]:
        line = f"    {name}: {before} -> {after}"
        out += [line] if len(line) <= phrases.TEXT_COLUMNS else phrases.wrap(line.strip(), "    ", "        ")
    if len(changes) > MAX_PRINTED_LINES:
        out.append(f"    and {len(changes) - MAX_PRINTED_LINES} more, all of them in report.json")
    return out


def _rest(material: Material, conclusion: Conclusion) -> list[str]:
    metric = material.goal.metric
    out = phrases.heading("How it adds up")
    if conclusion.total is None:
        return [*out, "  The two ends were not compared."]
    terms = material.goal.terms
    rows = [(f"{terms.old} to {terms.new}", phrases.effect(conclusion.total, metric))]
    for finding in statements.counted_parts(conclusion):  # two may be sets of as many commits
        rows.append((statements.part_name(material, finding), phrases.effect(finding.effect, metric)))
    if conclusion.rest is not None and len(rows) > 1:  # else it is the whole change
        rows.append(("unexplained", phrases.effect(conclusion.rest, metric)))
    out += phrases.pairs(rows)
    sentence = statements.explained(material, conclusion)
    return out + (phrases.wrap(sentence) if sentence else [])


def _user(material: Material) -> list[str]:
    entries = statements.words_of_user(material)
    return phrases.heading("What the user said on the way") + phrases.bullets(entries) if entries else []


def _untestable(material: Material) -> list[str]:
    lines = statements.untestable(material)
    if not lines:
        return []
    out = phrases.heading(f"{statements.title_of_untestable(material)} ({len(material.state.untestable)})")
    out += phrases.bullets(lines[:MAX_PRINTED_LINES])
    if len(lines) > MAX_PRINTED_LINES:
        out.append(f"  and {len(lines) - MAX_PRINTED_LINES} more lines, all of them in report.json")
    return out
