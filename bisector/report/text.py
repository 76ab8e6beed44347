"""The report as plain text, at most 78 columns where names allow it: what a person reads or mails."""

from __future__ import annotations

from bisector.model.decisions import Conclusion, Ending, Finding
from bisector.model.format import count
from bisector.model.records import Discarded
from bisector.report import (
    attempt_result,
    conditions,
    config_drift,
    level_curve,
    monitor_results,
    phrases,
    reproduction,
    testbed_verdicts,
    trials,
)
from bisector.report.kernel_differences import Change, Differences, compare
from bisector.report.report_model import Material, named

MAX_PRINTED_LINES = 20
"""Lines of a list in the text; report.json has all of it."""
MAX_NAMED_ALIKE = 3
"""Commits that are named one by one if they could not be tested for the same reason."""


def render(material: Material) -> str:
    """Return the whole report."""
    out = [f"perfbisect report  {material.id}", "=" * phrases.WIDTH]
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
        out += _rest(material, material.conclusion)
    return out


def summary(material: Material) -> list[str]:
    """Return the first part: what was found, how certain, how large. A terminal shows it alone."""
    conclusion = material.conclusion
    if conclusion is None:
        asked = phrases.wrap(conditions.asked(material))
        return [f"No conclusion yet: {material.status}.", "", *asked, *_so_far(material)]
    proven = sum(f.certified for f in conclusion.culprits)
    partly = conclusion.ending is Ending.INCONCLUSIVE and proven
    terms = material.goal.terms
    also = f", {proven} {terms.one if proven == 1 else terms.several} proven".upper() if partly else ""
    out = [f"Result: {phrases.ENDINGS[conclusion.ending]}{also}", ""]
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
    metric = material.goal.metric
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
        which = f"and {more:,} more" if named(finding) else f"one of {more:,} commits"
        out.append(f"  {which}, all of them in report.json")
    out.append("")
    rows: dict[str, str] = {}
    first, parents = finding.commits[0], finding.parents
    if len(finding.commits) == 1:
        before = trials.level(material, parents[0]) if parents else None
        after = trials.level(material, first)
        if before is not None and after is not None:
            rows[metric.name] = (
                f"{phrases.number(before, after)} -> {phrases.number(after)} {metric.unit}  "
                f"(mean, parent -> {'commit' if finding.small else material.goal.terms.one})"
            )
    rows["effect"] = phrases.effect(finding.effect, metric.better)
    rows["confidence"] = f"{100 * finding.confidence:.1f}%"
    if finding.certified:
        against = ", ".join(material.commit(p).sha[:12] for p in parents)
        boots = sum(
            1
            for t in material.trials
            if t.booted.purpose == "certify" and t.booted.commit in {*finding.commits, *parents}
        )
        rows["proof"] = (
            f"compared afresh with its parent{'s' if len(parents) > 1 else ''} {against}: "
            f"{count(boots, 'fresh boot')}"
        )
    elif len(finding.commits) == 1:
        rows["proof"] = "not certified: no fresh comparison with its parent held"
    for parent in parents:
        rows.setdefault("parent", material.label(parent))
    if finding.note:
        rows["note"] = finding.note
    out += phrases.pairs(rows)
    out.append("")
    return out


def _differences(material: Material, finding: Finding) -> list[str]:
    if len(finding.commits) != 1 or not finding.parents:
        return []
    found = between(material, finding.parents[0], finding.commits[0])
    commit = material.commit(finding.commits[0])
    out = phrases.heading(f"What differs besides code: {commit.sha[:12]} and its parent")
    if not found.known:
        return [*out, "  Unknown: one of the two kernels' configurations was not recorded."]
    out += phrases.bullets(found.sentences(f"commit {commit.sha[:12]}"))
    out += _changes("effective .config", found.options, "CONFIG_")
    out += _changes("guest", found.settings)
    out += _changes("mitigations", found.mitigations)
    out += _changes("sysctl defaults", found.sysctls)
    out += _changes("sizes in bytes", found.sizes)
    same = [
        name
        for name, changes in (
            ("effective .config", found.options),
            ("clocksource and command line", found.settings),
            ("mitigations", found.mitigations),
            ("sysctl defaults", found.sysctls),
        )
        if not changes
    ]
    if same:
        out += phrases.wrap(f"The same in both: {', '.join(same)}.")
    if found.preemption is not None:
        out += phrases.wrap(f"Preemption model: {' -> '.join(dict.fromkeys(found.preemption))}.")
    return out


def between(material: Material, before: int, after: int) -> Differences:
    """Return what differs besides code between two commits of the bisection."""
    return compare(
        material.kernel(before), material.kernel(after), material.facts(before), material.facts(after)
    )


def _changes(title: str, changes: tuple[Change, ...], prefix: str = "") -> list[str]:
    if not changes:
        return []
    out = [f"  {title}:"]
    for name, before, after in changes[:MAX_PRINTED_LINES]:
        line = f"    {prefix}{name}: {before} -> {after}"
        out += [line] if len(line) <= phrases.WIDTH else phrases.wrap(line.strip(), "    ", "        ")
    if len(changes) > MAX_PRINTED_LINES:
        out.append(f"    and {len(changes) - MAX_PRINTED_LINES} more, all of them in report.json")
    return out


def _rest(material: Material, conclusion: Conclusion) -> list[str]:
    better = material.goal.metric.better
    out = phrases.heading("How it adds up")
    if conclusion.total is None:
        return [*out, "  The two ends were not compared."]
    terms = material.goal.terms
    rows = {f"{terms.old} to {terms.new}": phrases.effect(conclusion.total, better)}
    # What is not proven is a part of the rest, where a rest is stated.
    for finding in (f for f in conclusion.findings if f.certified or conclusion.rest is None):
        names = ", ".join(material.commit(i).sha[:12] for i in finding.commits)
        rows[names if len(finding.commits) < 3 else f"set of {len(finding.commits)}"] = phrases.effect(
            finding.effect, better
        )
    if conclusion.rest is not None:
        rows["unexplained"] = phrases.effect(conclusion.rest, better)
    out += phrases.pairs(rows)
    rest = conclusion.rest
    if rest is not None and conclusion.findings:
        unknown = rest.low > 0 or rest.high < 0
        text = (
            f"Part of the change from {terms.old} to {terms.new} is not explained by what was found: other "
            "commits of the range contribute, each less than the threshold or not searched for."
            if unknown
            else f"What was found explains the change from {terms.old} to {terms.new} within the interval."
        )
        out += phrases.wrap(text)
    return out


def _user(material: Material) -> list[str]:
    if not material.words_of_user:
        return []
    out = phrases.heading("What the user said on the way")
    for said in material.words_of_user:
        note = f" ({said.note})" if said.note else ""
        if isinstance(said, Discarded):
            out += phrases.bullets([f"discarded the data of {said.kind} {said.name}{note}"])
        else:
            out += phrases.bullets([f"{material.label(said.commit)} is {said.verdict}{note}"])
    return out


def _untestable(material: Material) -> list[str]:
    found = material.state.untestable
    if not found:
        return []
    alike: dict[str, list[int]] = {}
    for index, why in sorted(found.items()):
        alike.setdefault(why, []).append(index)
    groups = sorted(alike.items(), key=lambda group: len(group[1]))  # what happened once tells most
    lines: list[str] = []
    for why, commits in groups:
        if len(commits) <= MAX_NAMED_ALIKE:
            lines += [f"{material.label(i)}: {why}" for i in commits]
        else:
            lines.append(f"{len(commits)} commits, such as {material.label(commits[0])}: {why}")
    out = phrases.heading(f"Commits that could not be tested ({len(found)})")
    out += phrases.bullets(lines[:MAX_PRINTED_LINES])
    if len(lines) > MAX_PRINTED_LINES:
        out.append(f"  and {len(lines) - MAX_PRINTED_LINES} more lines, all of them in report.json")
    return out
