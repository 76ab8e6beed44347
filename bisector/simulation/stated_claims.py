"""Everything that a conclusion states beside the culprits it names, against the truth of a simulated lab.

Claims are either true or false: that a commit changes the metric in this direction, that a change is smaller
than the threshold, that at least so many commits have a part, that testbeds show the change or do not.
Intervals have a nominal share of failures, so they are counted by kind instead. What only the text says is
read from the text, for that is what a user reads.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from bisector.model.decisions import Conclusion, Finding, Interval
from bisector.simulation.noise_model import SyntheticLab
from bisector.simulation.scenario import Scenario

IntervalKind = Literal["total", "effect", "rest", "level", "suspects"]
"""Of the total; of each proven change; of the rest; of each measured level; the suspects named 'together'."""

_PARTS = re.compile(r"at least (\d+) \w+ have a part")
_ABSENT = re.compile(r"The change (?:is shown|may be) on [^:]*?, not on ([^:]*?)(?:, not known on [^:]*)?:")
_DIRECTIONS = re.compile(r"The testbeds differ in direction: ((?:[^)]*\) on [^, .]+(?:, )?)+)\.")
_DIRECTION = re.compile(r"([+-])[\d.,]+% \([^)]*\) on ([^, .]+)")
_SLACK = 1e-9
"""Relative tolerance where a true change is compared with the threshold: it is often that exactly."""


@dataclass(frozen=True, slots=True)
class Statements:
    """false_claims: those that are not true, in words. held: (intervals that hold the truth, all) by kind."""

    false_claims: tuple[str, ...]
    held: Mapping[IntervalKind, tuple[int, int]]


def check_statements(scenario: Scenario, lab: SyntheticLab, conclusion: Conclusion) -> Statements:
    """Compare what is stated with the truth. Where testbeds differ, intervals are true on none of them."""
    effects = {lab.traits(name).effect: name for name in conclusion.searched_on or scenario.testbed_names}
    truth = _Truth(lab, scenario.limit, effects[max(effects, key=abs)])
    alike = len(effects) == 1
    held: Counter[tuple[IntervalKind, bool]] = Counter()
    if alike:
        held.update(_intervals(truth, conclusion))
    claims = [*_findings(truth, conclusion), *_parts(truth, conclusion)]
    claims += _testbeds(scenario, lab, conclusion)
    kinds = {kind for kind, _ in held}
    counts = {kind: (held[kind, True], held[kind, True] + held[kind, False]) for kind in kinds}
    return Statements(tuple(claims), counts)


@dataclass(frozen=True, slots=True)
class _Truth:
    """The truth on one testbed, that with the largest effects. Changes of the metric are relative."""

    lab: SyntheticLab
    limit: float
    testbed: str

    def change(self, before: int, after: int) -> float:
        """Return the relative change of the metric from one commit to another."""
        values = [self.lab.value(self.lab.truth(c, self.testbed)) for c in (before, after)]
        return values[1] / values[0] - 1

    def steps(self, finding: Finding) -> list[float]:
        """Return the relative change at a finding from each parent; in a set, where there is an effect."""
        own = [c for c in finding.commits if self.step(c)] or list(finding.commits[:1])
        return [self.change(p, c) for c in own for p in self.lab.graph.parents[c] or (c,)]

    def step(self, commit: int) -> float:
        """Return what a commit itself adds to the level, in percent; positive is worse."""
        lab = self.lab
        more = lab.traits(self.testbed).effect - 1.0
        return float(lab.steps[commit]) + more * lab.culprits.get(commit, 0.0)


def _intervals(truth: _Truth, conclusion: Conclusion) -> Iterator[tuple[IntervalKind, bool]]:
    """Yield the kind of each interval, and whether it holds the truth."""
    graph = truth.lab.graph
    total = truth.change(graph.good, graph.bad)
    proven = [f for f in conclusion.findings if f.certified]
    if conclusion.total is not None:
        yield "total", _holds(conclusion.total, total)
    for finding in proven:
        yield "effect", any(_holds(finding.effect, step) for step in truth.steps(finding))
    if conclusion.rest is not None:
        explained = math.prod(_own_factor(truth, f) for f in proven)
        yield "rest", _holds(conclusion.rest, 1 + total - explained)
    for commit, level in conclusion.levels:
        if commit != graph.good:
            yield "level", _holds(level, truth.change(graph.good, commit))
    for finding in conclusion.findings:
        if not finding.certified and len(finding.commits) > 1:
            yield "suspects", not truth.lab.culprits.keys().isdisjoint(finding.commits)


def _own_factor(truth: _Truth, finding: Finding) -> float:
    """Return the factor on the metric by a finding's commits themselves, without what a merge brings in."""
    lab, factor = truth.lab, 1.0
    for commit in finding.commits:
        level = lab.truth(commit, truth.testbed)
        factor *= lab.value(level) / lab.value(level - truth.step(commit))
    return factor


def _holds(interval: Interval, truth: float) -> bool:
    return interval.low <= truth <= interval.high


def _findings(truth: _Truth, conclusion: Conclusion) -> Iterator[str]:
    """Yield what is falsely said of each proven change: that there is one, its direction, its size."""
    for finding in conclusion.findings:
        if not finding.certified:
            continue
        names = ", ".join(map(str, finding.commits))
        own = [truth.step(c) for c in finding.commits if truth.step(c)]
        if not own:
            yield f"{names} changes nothing"
        elif not any(step * finding.effect.estimate > 0 for step in truth.steps(finding)):
            yield f"{names} changes the metric the other way"
        if finding.small and any(abs(step) >= truth.limit * (1 + _SLACK) for step in own):
            yield f"{names} is not smaller than the threshold"


def _parts(truth: _Truth, conclusion: Conclusion) -> Iterator[str]:
    """Yield the claim that so many commits have a part in the loss, where fewer have."""
    stated = _PARTS.search(conclusion.summary)
    if stated:
        candidates = [c for c, is_one in enumerate(truth.lab.graph.candidate) if is_one]
        parts = sum(truth.step(c) > 0 for c in candidates)
        if parts < int(stated[1]):
            yield f"{parts} commits have a part, not {stated[1]}"


def _testbeds(scenario: Scenario, lab: SyntheticLab, conclusion: Conclusion) -> Iterator[str]:
    """Yield what is falsely said of testbeds: that they show the change, that they do not, its direction."""

    def loss(name: str) -> float:
        return lab.truth(lab.graph.bad, name) - lab.truth(lab.graph.good, name)

    for name in conclusion.searched_on:
        if loss(name) <= 0:
            yield f"{name} does not show the change"
    absent = _ABSENT.search(conclusion.summary)
    for name in re.split(", | and ", absent[1]) if absent else ():
        if loss(name) >= scenario.limit * (1 - _SLACK):
            yield f"{name} shows the change"
    directions = _DIRECTIONS.search(conclusion.summary)
    worse = lab.value(1.0) - lab.value(0.0)
    for sign, name in _DIRECTION.findall(directions[1]) if directions else ():
        if loss(name) * worse * float(f"{sign}1") <= 0:
            yield f"{name} does not move {'up' if sign == '+' else 'down'}"
