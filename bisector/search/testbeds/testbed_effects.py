"""The difference of two commits on each testbed by itself, with that testbed's own level and noise.

The search compares all testbeds together. Where a change acts on some machines and not on others, its
estimate is a mean that none of them shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import chdtrc

from bisector.model.decisions import Interval, Purpose
from bisector.model.state import State
from bisector.search import sequential_test
from bisector.search.cache import PlannerCache
from bisector.search.sequential_test import Evidence

Shown = Literal["reproduced", "opposite", "small", "none", "open"]
"""What a testbed shows: the change that is looked for, one in the other direction, one that is below the
threshold, no change that reaches it, or too little to tell."""


@dataclass(frozen=True, slots=True)
class TestbedEffect:
    """The change on one testbed, a fraction of its level, with its 1 - alpha interval.

    boots: of both sides.
    """

    __test__ = False  # not a pytest class

    testbed: str
    effect: Interval
    shows: Shown
    boots: tuple[int, int]


@dataclass(frozen=True, slots=True)
class TestbedEffects:
    """A change on several testbeds. p: that they differ so much by chance, by Cochran's Q test (1954)."""

    __test__ = False

    each: tuple[TestbedEffect, ...]
    p: float
    alpha: float

    @property
    def disagree(self) -> bool:
        """Whether the testbeds show different things, or one thing in different sizes."""
        shown = {one.shows for one in self.each} - {"open"}
        return self.p <= self.alpha or ("opposite" in shown and len(shown) > 1)


def effects_by_testbed(
    state: State, before: int, after: Sequence[int], purpose: Purpose
) -> TestbedEffects | None:
    """Return what each testbed shows that has booted both sides for a purpose; None unless two have.

    after: one commit, or those of a set of which one was measured.
    """
    chosen = [v for v in state.visits if v.purpose == purpose and v.samples]
    measured = {v.commit for v in chosen} & set(after)
    names = sorted({v.testbed for v in chosen if v.commit in measured})
    if len(names) < 2 or not measured:
        return None
    cache = PlannerCache(state.graph, None)
    found: list[tuple[TestbedEffect, Evidence]] = []
    for name in names:
        one = _on_one(state, cache, name, before, max(measured), purpose)
        if one is not None:
            found.append(one)
    if len(found) < 2:
        return None
    return TestbedEffects(
        tuple(effect for effect, _ in found), _chance([e for _, e in found]), state.goal.alpha
    )


def _on_one(
    state: State, cache: PlannerCache, testbed: str, before: int, after: int, purpose: Purpose
) -> tuple[TestbedEffect, Evidence] | None:
    whole = cache.context(state)
    context = cache.restrict(whole, tuple(v for v in whole.state.visits if v.testbed == testbed))
    r = context.readings
    if r is None:
        return None
    sides = context.comparison_sides(before, after, np.array([p == purpose for p in r.purpose]))
    if sides is None:
        return None
    prior = sequential_test.broad_effect_prior(context.threshold)
    evidence = context.compare(*sides, context.spread_hypotheses(None), prior)
    change = r.scale.to_relative_change(evidence.low, evidence.estimate, evidence.high)
    boots = len(sides[0].location), len(sides[1].location)
    return TestbedEffect(testbed, change, _shows(evidence, context.threshold), boots), evidence


def _shows(evidence: Evidence, threshold: float) -> Shown:
    if evidence.high < 0:
        return "opposite"
    if evidence.high < threshold:
        return "small" if evidence.low > 0 else "none"
    return "reproduced" if evidence.low > 0 else "open"


def _chance(found: Sequence[Evidence]) -> float:
    """Return the p-value of effects that are all the same: weighted squares about their mean, chi squared."""
    effect = np.array([e.estimate for e in found])
    weight = 1.0 / np.maximum(np.array([e.sd for e in found]), math.sqrt(np.finfo(float).tiny)) ** 2
    mean = float((weight * effect).sum() / weight.sum())
    return float(chdtrc(len(found) - 1, float((weight * (effect - mean) ** 2).sum())))
