"""The verification of the ends: does bad differ from good by the threshold at all?"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from bisector.model.records import Measure
from bisector.search import sequential_test
from bisector.search.cache import Memory
from bisector.search.context import View
from bisector.search.interleaving import (
    MORE_LAYOUTS,
    PILOT,
    fewest_boots,
    interleave,
    runs_needed,
    runs_wanted,
)
from bisector.search.noise_priors import unit_spreads
from bisector.search.sequential_test import Evidence, Spread

BINARIES = ((0.0, 0.6), (0.25, 0.15), (0.5, 0.15), (1.0, 0.1))
"""(spread between binaries / threshold, prior), for a verdict about two binaries only."""

MANY = math.log(1e6)
"""Log odds that nobody needs to know more exactly."""


def ends(whole: View, memory: Memory) -> Evidence | None:
    """Return what the boots for the verification say about the two ends; None before both have one.

    Only those boots are looked at, so that the answer stays once it is given.
    """
    view = memory.part(whole, tuple(v for v in whole.state.visits if v.purpose == "verify"))
    return memory.remember(("ends", view.measured), lambda: _ends(view))


def _ends(view: View) -> Evidence | None:
    r = view.readings
    if r is None:
        return None
    sides = view.sides(view.graph.good, view.graph.bad, np.ones(len(r.commit), dtype=bool))
    if sides is None:
        return None
    threshold = r.scale.threshold
    effects = sequential_test.unknown(threshold)

    def look(spreads: list[Spread]) -> Evidence:
        return sequential_test.compare_sides(
            *sides, spreads, r.run_df, effects, threshold=threshold, floor=view.floor, alpha=view.alpha
        )

    plain = view.spreads(None)
    evidence = look(plain)
    several = bool(r.layout.any())
    # An exact clock does not see layouts: what binaries differ by is what the commits did.
    if view.exact or (evidence.less <= 0 and evidence.high > 0 and not several):
        return evidence
    # 'Not reproduced' must not rest on two binaries that happen to hide the loss by their code layout.
    units = unit_spreads(r, threshold, BINARIES)
    binaries = [Spread(s.boot, u, s.weight * w) for s in plain for u, w in units]
    careful = look(binaries)
    if several:
        return careful
    return replace(evidence, less=careful.less, low=careful.low, high=careful.high)


def verify(view: View, evidence: Evidence | None) -> Measure:
    """Return the next step of the verification of the ends."""
    why, layouts, target = "verify that the ends differ", range(1), PILOT
    if evidence is not None and view.readings is not None and view.readings.run_df >= 4:
        target = runs_wanted(view, evidence.boots)
        target = min(target, runs_needed(view, max(evidence.estimate, view.threshold)))
    if evidence is not None:
        odds = f"odds {math.exp(evidence.change):.2g}" if evidence.change < MANY else "odds beyond a million"
        why += f" ({odds} to 1 so far, {1 / view.alpha:.3g} wanted)"
        if evidence.less > 0.5 * math.log(1 / view.alpha):
            why, layouts = "make sure that the ends do not differ", range(MORE_LAYOUTS)
    names = {view.graph.good: "good", view.graph.bad: "bad"}
    return interleave(view, tuple(names), "verify", target, layouts, why, names)


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
    # An interval below zero is no reason: looked at after every boot it misleads one time in ten.
    if evidence.less >= need:
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
