"""The certificate of a culprit: fresh boots against every parent, which the search's data are no part of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bisector.search import sequential_test
from bisector.search.cache import Memory, Proven
from bisector.search.context import View
from bisector.search.interleaving import LAYOUTS, MORE_LAYOUTS, MOST_LAYOUTS, PATIENCE, fewest_boots
from bisector.search.posterior import Belief
from bisector.search.sequential_test import Evidence


@dataclass(frozen=True, slots=True)
class Proof:
    """A change (by one commit, or by a set that cannot be split) that fresh boots have proven.

    commits: the set; after: the commit that was measured for it; parents: those it was measured against;
    evidence: the weakest of the comparisons; share: the alpha it was allowed to spend; small: it does not
    reach the threshold, and is no culprit.
    """

    commits: tuple[int, ...]
    after: int
    parents: tuple[int, ...]
    evidence: Evidence
    share: float
    small: bool = False


def weigh(view: View, commits: tuple[int, ...], after: int, found: Sequence[Evidence]) -> Proof | None:
    """Return what the comparisons with every parent prove, None while they leave it open.

    A culprit has changed, and may well reach the threshold. What has changed and hardly reaches it is called
    small when that is proven too, or when further boots would not tell more: under an exact clock none does.
    """
    alpha = share(view, after)
    if not found or any(e.change < math.log(1 / alpha) for e in found):
        return None
    weakest = min(found, key=lambda e: e.change)
    proven = Proof(commits, after, parents_of(view, commits, after), weakest, alpha)
    below = [e for e in found if e.above <= view.alpha]
    if not below:
        return proven
    known = view.exact or len(view.boots((after,), "certify")) >= PATIENCE
    if known or any(e.less >= math.log(1 / view.alpha) for e in below):
        return replace(proven, small=True)
    return None


def before(view: View, commits: Sequence[int]) -> tuple[int, ...]:
    """Return the nearest testable commits below a set: its parents, or theirs where they cannot be tested."""
    found: set[int] = set()
    seen = set(commits)
    todo = [p for c in commits for p in view.graph.parents[c]]
    while todo:
        commit = todo.pop()
        if commit in seen:
            continue
        seen.add(commit)
        if view.testable(commit):
            found.add(commit)
        else:
            todo.extend(view.graph.parents[commit])
    return tuple(sorted(found))


def scatter(belief: Belief) -> bool:
    """Return whether binaries of equal code may well scatter by an amount that matters."""
    large = 0.2 * belief.problem.effect
    weighed = zip(belief.fits.noises, belief.weights, strict=True)
    return sum(float(w) for n, w in weighed if n.unit >= large) >= 0.25


def layouts_wanted(belief: Belief) -> Sequence[int]:
    """Return the code layouts that a certificate goes over: more where binaries scatter (search.md).

    Then the ordinary one, 0, is none of them: the search has chosen the suspect by it.
    """
    if not scatter(belief):
        return range(LAYOUTS)
    many = belief.noise_mean("unit") > 0.35 * belief.problem.effect
    return range(1, 1 + (MOST_LAYOUTS if many else MORE_LAYOUTS))


def suspects(view: View) -> list[int]:
    """Return the commits with boots for a certificate, oldest first."""
    order: dict[int, int] = {}
    for i, v in enumerate(view.state.visits):
        if v.purpose == "certify" and v.samples:
            order.setdefault(v.commit, i)
    return list(order)


def parents_of(view: View, commits: Sequence[int], after: int) -> tuple[int, ...]:
    """Return the commits to compare a suspect with.

    A parent that lacks part of good's history has an offset of its own, which the comparison would mistake
    for the effect; it is left out where another parent has the same base as the suspect.
    """
    found = before(view, commits)
    base = view.history.base(after)
    level = tuple(c for c in found if view.history.base(c) == base)
    return level or found


def certificate(
    whole: View, memory: Memory, parent: int, after: int, proven: Proven, effect: float
) -> Evidence | None:
    """Return what fresh boots say about a suspect against one parent, None before both have one.

    The prior for the effect and the spreads come from the visits before the suspect's first fresh boot;
    visits after the last fresh boot of the two change nothing, so that the answer stays once it is given.
    """
    visits = whole.state.visits
    fresh = [i for i, v in enumerate(visits) if v.purpose == "certify" and v.samples]
    begun = [i for i in fresh if visits[i].commit == after]
    if not begun or not any(visits[i].commit == parent for i in fresh):
        return None
    end = max(i for i in fresh if visits[i].commit in (after, parent)) + 1
    view = memory.part(whole, visits[:end])
    return memory.remember(
        ("certificate", parent, after, proven, effect, view.key),
        lambda: _certificate(view, memory, parent, after, begun[0], proven, effect),
    )


def _certificate(
    view: View, memory: Memory, parent: int, after: int, start: int, proven: Proven, effect: float
) -> Evidence | None:
    r = view.readings
    assert r is not None
    earlier = memory.part(view, view.state.visits[:start])
    belief = memory.belief(earlier, proven, effect)
    mean, sd = _prior_effect(belief, after, parent)
    chosen = np.array([p == "certify" for p in r.purpose])
    if view.layouts and scatter(belief):
        # The search has chosen this pair by its ordinary binaries: their own offsets are part of the reason.
        chosen &= r.layout > 0
    sign = math.copysign(1.0, mean)
    sides = view.sides(parent, after, chosen)
    if sides is None:
        return None
    a, b = sides
    flipped = (
        sequential_test.Side(sign * a.location, a.precision, a.binary),
        sequential_test.Side(sign * b.location, b.precision, b.binary),
    )
    spreads = view.spreads(belief)
    if view.exact:
        # Counted instructions see no code layout: what two binaries differ by is what the commit did. A
        # spread that no further layout can average away would keep the comparison from ever ending.
        spreads = [replace(s, unit=0.0) for s in spreads]
    e = sequential_test.compare_sides(
        *flipped,
        spreads,
        r.run_df,
        sequential_test.around(abs(mean), sd, r.scale.threshold),
        threshold=r.scale.threshold,
        floor=view.floor,
        alpha=view.alpha,
    )
    low, high = (e.low, e.high) if sign > 0 else (-e.high, -e.low)
    return replace(e, low=low, estimate=sign * e.estimate, high=high)


def _prior_effect(belief: Belief, after: int, parent: int) -> tuple[float, float]:
    """Return mean and deviation of the effect that the search expects between two commits."""
    p = belief.problem
    index = {c: i for i, c in enumerate(p.tested)}
    if after in index and parent in index:
        inside = p.classes.contains[:, index[after]] & ~p.classes.contains[:, index[parent]]
        if inside.any():
            k = int(np.argmax(np.where(inside, belief.marginal, -1.0)))
            return belief.effect(k)
    k = int(np.argmax(belief.marginal))
    return belief.effect(k)


def share(view: View, after: int) -> float:
    """Return the part of alpha that this suspect's certificate may spend: 6 / (pi j)^2, summing to one."""
    order = suspects(view)
    j = order.index(after) + 1 if after in order else len(order) + 1
    return view.alpha * 6 / (math.pi * j) ** 2


def enough(view: View, commits: Sequence[int]) -> bool:
    """Return whether all sides have the fewest boots, and layouts, that a certificate needs."""
    for c in commits:
        boots = view.boots((c,), "certify")
        if len(boots) < fewest_boots(view, "certify"):
            return False
        if view.layouts and len({v.layout for v in boots}) < LAYOUTS:
            return False
    return True
