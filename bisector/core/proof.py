"""Interleaved comparisons with fresh boots: the verification of the ends, the certificate of a culprit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bisector.core import certify
from bisector.core.certify import Evidence, Spread
from bisector.core.memory import Memory, Proven
from bisector.core.model import Measure, Purpose
from bisector.core.posterior import Belief
from bisector.core.state import Visit
from bisector.core.view import View

PILOT = 3
"""Runs in the first boots: with both ends they give four degrees of freedom for the run noise."""
CHUNKS = 3
"""A boot's runs are asked for in so many parts, so that it can be left early."""
BINARIES = ((0.0, 0.6), (0.25, 0.15), (0.5, 0.15), (1.0, 0.1))
"""(spread between binaries / threshold, prior), for a verdict about two binaries only."""
PATIENCE = 16
"""Boots a side after which an undecided comparison tries other code layouts: more than d = .5 takes."""
LAYOUTS, MORE_LAYOUTS, MOST_LAYOUTS = 2, 3, 6
"""Code layouts on each side of a certificate: two at a quarter of the effect and six at half (search.md).
'Not reproduced' needs three on each side, for it rests on two binaries that nothing else vouches for."""
MOST_BOOTS = 200
"""Boots on each side after which a comparison is given up."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A culprit (or a set that cannot be split) that fresh boots have proven.

    commits: the set; after: the commit that was measured for it; parents: those it was measured against;
    evidence: the weakest of the comparisons; share: the alpha it was allowed to spend.
    """

    commits: tuple[int, ...]
    after: int
    parents: tuple[int, ...]
    evidence: Evidence
    share: float


def ends(whole: View, memory: Memory) -> Evidence | None:
    """Return what the boots for the verification say about the two ends; None before both have one.

    Only those boots are looked at, so that the answer stays once it is given.
    """
    view = memory.part(whole, tuple(v for v in whole.state.visits if v.purpose == "verify"))
    return memory.remember(("ends", view.key), lambda: _ends(view))


def _ends(view: View) -> Evidence | None:
    r = view.readings
    if r is None:
        return None
    sides = view.sides(view.graph.good, view.graph.bad, np.ones(len(r.commit), dtype=bool))
    if sides is None:
        return None
    threshold = r.scale.threshold
    effects = certify.unknown(threshold)

    def look(spreads: list[Spread]) -> Evidence:
        return certify.compare_sides(
            *sides, spreads, r.run_df, effects, threshold=threshold, floor=view.floor, alpha=view.alpha
        )

    plain = view.spreads(None)
    evidence = look(plain)
    several = bool(r.layout.any())
    if evidence.less <= 0 and evidence.high > 0 and not several:
        return evidence
    # 'Not reproduced' must not rest on two binaries that happen to hide the loss by their code layout.
    binaries = [Spread(s.boot, u * threshold, s.weight * w) for s in plain for u, w in BINARIES]
    careful = look(binaries)
    if several:
        return careful
    return replace(evidence, less=careful.less, low=careful.low, high=careful.high)


def fewest_boots(view: View, purpose: Purpose) -> int:
    """Return how many boots each side needs at least: one cannot tell a boot's offset from a commit's."""
    return 1 if view.exact and purpose == "verify" else 2


def interleave(
    view: View,
    sides: Sequence[int],
    purpose: Purpose,
    target: int,
    layouts: int,
    why: str,
    *,
    after: int = 0,
) -> Measure:
    """Return the next step of a comparison: go on in the live boot, or boot the side whose turn it is.

    The order is ABBA, so that a steady drift cancels. target: runs wanted in a boot; layouts: code layouts to
    go through; after: number of this purpose's visits that belong to earlier comparisons.
    """
    most = view.goal.max_runs_per_boot
    target = max(1, min(target, most))
    live = view.live((purpose,))
    if live is not None and live.commit in sides and len(live.samples) < target:
        runs = min(max(1, math.ceil(target / CHUNKS)), target - len(live.samples))
        return Measure(live.commit, runs, purpose, f"{why}: {runs} more runs in this boot", live.boot)
    done = [v for v in view.state.visits[after:] if v.purpose == purpose and v.commit in sides]
    here = [v for v in done if view.state.idle is None or v.testbed == view.state.idle]
    counts = [sum(v.commit == s for v in here) for s in sides]
    fewest = min(counts)
    order = list(range(len(sides)))
    if fewest % 2 and len(sides) > 1:
        order.reverse()
    side = next(i for i in order if counts[i] == fewest)
    total = sum(v.commit == sides[side] for v in done)
    if total >= PATIENCE:
        layouts = max(layouts, min(MORE_LAYOUTS + (total - PATIENCE) // 2, 2 * MOST_LAYOUTS))
    first = max(1, math.ceil(target / CHUNKS)) if total >= fewest_boots(view, purpose) else min(PILOT, target)
    if view.exact:
        first = min(target, 2)
    return Measure(
        sides[side],
        first,
        purpose,
        f"{why}: fresh boot {total + 1} of this side, {first} runs",
        layout=_next_layout(done, sides[side], layouts if view.layouts else 1),
    )


def _next_layout(done: Sequence[Visit], commit: int, layouts: int) -> int:
    """Return the layout of a commit with the fewest boots, the first of them."""
    counts = [sum(v.commit == commit and v.layout == k for v in done) for k in range(layouts)]
    return counts.index(min(counts))


def runs_wanted(view: View, boot_sd: float) -> int:
    """Return how many runs a boot should have for most precision per second."""
    r = view.readings
    if r is None or view.exact:
        return PILOT if r is None else 2
    best = certify.runs_per_boot(
        view.boot_cost, view.run_cost, boot_sd, r.run_sd, view.goal.max_runs_per_boot
    )
    return max(best, 1)


def runs_needed(view: View, effect: float) -> int:
    """Return the runs in a boot that settle a comparison of such an effect with two boots a side.

    Two boots of m runs a side give a log e-value of m (effect / run sd)^2 / 2 at best; five is wanted.
    """
    r = view.readings
    if r is None or effect <= 0:
        return view.goal.max_runs_per_boot
    return math.ceil(min(10 * (r.run_sd / effect) ** 2, 1e6)) + 1


def verify(view: View, evidence: Evidence | None) -> Measure:
    """Return the next step of the verification of the ends."""
    spread = view.readings.run_sd if view.readings is not None else 0.0
    target = runs_wanted(view, 0.6 * spread)
    if evidence is not None and evidence.change > 0:
        target = min(target, runs_needed(view, evidence.estimate))
    if evidence is None or view.readings is None or view.readings.run_df < 4:
        target = max(min(target, PILOT), PILOT)
    why = "verify that the ends differ"
    layouts = 1
    if evidence is not None:
        odds = math.exp(min(evidence.change, 50))
        why = f"verify that the ends differ (odds {odds:.3g} to 1 so far, {1 / view.alpha:.3g} wanted)"
        if evidence.less > 0.5 * math.log(1 / view.alpha):
            why, layouts = "make sure that the ends do not differ", MORE_LAYOUTS
    return interleave(view, (view.graph.good, view.graph.bad), "verify", target, layouts, why)


def decided(view: View, evidence: Evidence | None) -> str:
    """Return 'yes' (reproduced), 'no', or '' while the ends need more boots."""
    if evidence is None:
        return ""
    need = math.log(1 / view.alpha)
    for end in (view.graph.good, view.graph.bad):
        if len(view.boots((end,), "verify")) < fewest_boots(view, "verify"):
            return ""
    assert view.readings is not None
    if view.readings.run_df < 3 and not view.exact:
        return ""
    if evidence.less >= need or evidence.high < 0:
        return "no" if _vouched(view) else ""
    if evidence.change >= need and evidence.estimate > 0:
        if evidence.above > view.alpha:
            return "yes"
        return "no" if _vouched(view) else ""
    return ""


def _vouched(view: View) -> bool:
    """Return whether 'not reproduced' rests on more than one binary of each end, where that matters."""
    ends = ((view.graph.good,), (view.graph.bad,))
    return not view.layouts or all(
        len({v.layout for v in view.boots(end, "verify")}) >= MORE_LAYOUTS for end in ends
    )


# --- the certificate ----------------------------------------------------------------------------------------


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


def layouts_wanted(belief: Belief) -> int:
    """Return over how many code layouts a certificate goes: more where binaries scatter (search.md)."""
    problem = belief.problem
    large = sum(
        float(w)
        for n, w in zip(belief.fits.noises, belief.weights, strict=True)
        if n.unit >= 0.2 * problem.effect
    )
    if large < 0.25:
        return LAYOUTS
    return MOST_LAYOUTS if belief.noise_mean("unit") > 0.35 * problem.effect else MORE_LAYOUTS


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
    sign = math.copysign(1.0, mean)
    sides = view.sides(parent, after, chosen)
    if sides is None:
        return None
    a, b = sides
    flipped = (
        certify.Side(sign * a.location, a.precision, a.binary),
        certify.Side(sign * b.location, b.precision, b.binary),
    )
    spreads = view.spreads(belief)
    if view.exact:
        # Counted instructions see no code layout: what two binaries differ by is what the commit did. A
        # spread that no further layout can average away would keep the comparison from ever ending.
        spreads = [replace(s, unit=0.0) for s in spreads]
    e = certify.compare_sides(
        *flipped,
        spreads,
        r.run_df,
        certify.around(abs(mean), sd, r.scale.threshold),
        threshold=r.scale.threshold,
        floor=view.floor,
        alpha=view.alpha,
    )
    low, high = (e.low, e.high) if sign > 0 else (-e.high, -e.low)
    return Evidence(e.change, e.less, low, sign * e.estimate, high, e.sd, e.above)


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
