"""Whether a culprit may be reported to those who wrote and keep the code: every reason why not."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from statistics import fmean

from bisector.model.commit_graph import short_name
from bisector.model.decisions import Finding
from bisector.report import phrases, statements
from bisector.report.report_model import Material
from bisector.report.sections import testbed_verdicts

LEAST_SHARE = 0.5
"""Share of the effect that other code layouts must show as well: half, chosen, so that most of it is no
accident of where code lies."""


def culprits_of(material: Material) -> list[Finding]:
    """Return the proven culprits of a search for a regression, each one commit."""
    conclusion = material.conclusion
    if conclusion is None or material.goal.find == "fix" or material.attempt is not None:
        return []
    return [f for f in conclusion.culprits if f.certified and len(f.commits) == 1]


def may_send(material: Material, finding: Finding, *, suspect: Mapping[str, str]) -> list[str]:
    """Return the reasons why a finding must not be reported to maintainers; none: it may be.

    suspect: testbeds that are not good now, each with why. All else never changes: it is of the report alone.
    """
    reasons = []
    if material.goal.unit == "kernel":
        reasons.append("it was found among listed kernels: which commit of them it is, nobody knows")
    if finding not in culprits_of(material):
        reasons.append("it is no certified culprit of a search for a regression")
    return reasons + doubts_about(material, finding, suspect=suspect)


def doubts_about(material: Material, finding: Finding, *, suspect: Mapping[str, str]) -> list[str]:
    """Return the reasons why a proven change may not come from what the commit does. suspect: as above."""
    reasons = _probability(finding) + _layout(material, finding) + _clocks(material, finding)
    return reasons + _testbeds(material, finding, suspect) + _broken_stretch(material, finding)


def _probability(finding: Finding) -> list[str]:
    """Return whether the model, by all trials together, does not believe the proof."""
    if finding.probability is None or not statements.is_doubtful(finding):
        return []
    return [f"its probability is {phrases.probability(finding.probability)}, in spite of its proof"]


def _layout(material: Material, finding: Finding) -> list[str]:
    """Return whether the effect may be one of where code lies, and not of what it does."""
    binaries = {built.commit: built.binary for built in material.builds if built.ok and not built.layout}
    culprit, state = finding.commits[-1], material.state
    for parent in finding.parents:
        if binaries.get(culprit) and binaries.get(culprit) == binaries.get(parent):
            return ["its kernel is the same as its parent's"]
    after: dict[str, list[float]] = {}
    before: dict[str, list[float]] = {}
    for visit in state.visits:
        side = after if visit.commit == culprit else before if visit.commit in finding.parents else None
        if visit.booted.layout and visit.samples and side is not None:
            level = fmean(itertools.starmap(material.pattern.level, visit.samples))
            side.setdefault(visit.testbed, []).append(level)
    both = [bed for bed in after if bed in before and fmean(before[bed])]  # levels differ between testbeds
    if both:
        change = fmean(fmean(after[bed]) / fmean(before[bed]) - 1 for bed in both)
        if change * finding.effect.estimate <= 0 or abs(change) < LEAST_SHARE * abs(finding.effect.estimate):
            percent = phrases.tenths(100 * change, "+")
            return [f"with other code layouts it changes by {percent}%: the layout matters"]
    elif material.conclusion is not None and any("layout" in w for w in material.conclusion.warnings):
        return ["code layout matters in this range, and no other layout was compared"]
    return []


def _clocks(material: Material, finding: Finding) -> list[str]:
    """Return whether the two kernels measured time by clocks that disagree."""
    clocks: dict[str, set[str]] = {}
    for visit in material.state.boots:
        if visit.commit in (*finding.commits, *finding.parents) and visit.booted.facts.get("clocksource"):
            clocks.setdefault(visit.testbed, set()).add(visit.booted.facts["clocksource"])
    reasons = [
        f"the clocksource changes with it on {testbed}: {', '.join(sorted(names))}"
        for testbed, names in sorted(clocks.items())
        if len(names) > 1
    ]
    both = (*finding.commits, *finding.parents)
    flagged = {
        visit.testbed
        for visit in material.state.boots
        if visit.commit in both and any("clock" in run.flags for run in visit.runs)
    }
    return reasons + [f"the clocks of guest and host disagreed on {testbed}" for testbed in sorted(flagged)]


def _testbeds(material: Material, finding: Finding, suspect: Mapping[str, str]) -> list[str]:
    """Return which testbeds that measured it are not sound, and whether testbeds disagree."""
    used = {v.testbed for v in material.state.visits if v.commit in (*finding.commits, *finding.parents)}
    reasons = [f"testbed '{name}' is suspect: {suspect[name]}" for name in sorted(used & suspect.keys())]
    for _, after, effects in testbed_verdicts.found(material):
        if effects.disagree and (after in finding.commits or after == material.graph.bad):
            return [*reasons, "the testbeds disagree"]
    return reasons


def _broken_stretch(material: Material, finding: Finding) -> list[str]:
    """Return whether commits before it could not be tested, so that one of them may be the culprit."""
    untestable = material.state.untestable
    parents = {p for commit in finding.commits for p in material.graph.parents[commit]}
    broken = sorted(p for p in parents if p in untestable)
    if broken:
        name = short_name(material.commit(broken[0]).sha)
        return [f"its parent {name} could not be tested: {untestable[broken[0]]}"]
    return [] if parents <= {*finding.parents} else ["it was not compared with each of its parents"]
