"""Measured levels that the proven culprits do not explain: a loss and its fix that were not searched for.

The search without --scan follows the difference of the ends. A commit that it measured on the way may still
read a level that no part of that difference explains. Two changes that cancel are the likeliest reason, and
the measured commits around it are the ends between which --scan finds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from bisector.model.commit_graph import short_name
from bisector.model.decisions import Interval
from bisector.model.format import change
from bisector.search.confirmation import Proof
from bisector.search.context import SearchContext
from bisector.search.levels.level_profile import MAX_DRIFT_PER_THRESHOLD, measured_levels
from bisector.search.posterior import MIN_EFFECT_PER_THRESHOLD, Posterior
from bisector.search.sequential_test import Evidence

MAX_MISFITS = 3
"""Places that a conclusion names, the largest first."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """Commits whose levels do not fit, as neighbours in history, and the measured ones around them that do.

    size: relative change by which the first of `commits`, the one that fits least, lies outside of what is
    explained. before: the newest fitting ancestor; after: the oldest fitting descendant.
    """

    commits: tuple[int, ...]
    before: int
    after: int
    size: Interval


def misfits(
    context: SearchContext, posterior: Posterior, proofs: Sequence[Proof], ends: Evidence
) -> list[Misfit]:
    """Return where measured levels differ from the proven culprits' by more than chance, the largest first.

    A level may lie anywhere between what is proven below it and that with the unexplained rest. It must
    differ from this by a culprit's least effect, and by more standard deviations than the largest of so many
    normal values does with probability alpha. None where levels of different times do not compare.
    """
    if posterior.noise_rms("drift") > MAX_DRIFT_PER_THRESHOLD * context.threshold:
        return []
    dag, graph = context.dag, context.graph
    levels = [x for x in measured_levels(context, posterior) if not dag.fork_base(x.commit)]
    inner = [x for x in levels if x.commit not in (graph.good, graph.bad) and context.testable(x.commit)]
    if not inner or graph.good not in {x.commit for x in levels}:
        return []
    good = next(x.sd for x in levels if x.commit == graph.good)
    rest = ends.estimate - sum(p.evidence.estimate for p in proofs)
    least = -float(ndtri(context.alpha / (2 * len(inner))))
    binary = posterior.noise_rms("binary")
    found: dict[int, tuple[float, float]] = {}
    for x in inner:
        inside = [p.evidence for p in proofs if dag.is_ancestor(p.after, x.commit)]
        left = x.level - sum(e.estimate for e in inside)
        outside = left - float(np.clip(left, min(0.0, rest), max(0.0, rest)))
        variance = x.sd**2 + good**2 + 2 * binary**2 + sum(e.sd**2 for e in inside)
        sd = float(np.sqrt(variance + 2 * (context.resolution**2 + context.hidden_by_rounding**2)))
        if abs(outside) > max(least * sd, MIN_EFFECT_PER_THRESHOLD * context.threshold):
            found[x.commit] = (outside, sd)
    fitting = [x.commit for x in levels if x.commit not in found]
    places: dict[tuple[int, int], list[int]] = {}
    for commit in found:
        before = max(c for c in fitting if dag.is_ancestor(c, commit))
        after = min((c for c in fitting if dag.is_ancestor(commit, c)), default=graph.bad)
        places.setdefault((before, after), []).append(commit)
    result = []
    for (before, after), commits in places.items():
        commits.sort(key=lambda c: -abs(found[c][0]) / found[c][1])
        size = context.measured.scale.around(*found[commits[0]])
        result.append(Misfit(tuple(commits), before, after, size))
    return sorted(result, key=lambda m: -abs(m.size.estimate))[:MAX_MISFITS]


def misfit_warnings(
    context: SearchContext, posterior: Posterior, proofs: Sequence[Proof], ends: Evidence
) -> tuple[str, ...]:
    """Return the warnings about levels that do not fit, with the command that looks for their cause."""
    if context.goal.scan:
        return ()
    terms, shas = context.goal.terms, context.graph.shas
    two = "a loss and its fix" if context.goal.find == "regression" else "a gain and its loss"
    texts = []
    for m in misfits(context, posterior, proofs, ends):
        at = " and ".join(short_name(shas[c]) for c in sorted(m.commits))
        before, after = short_name(shas[m.before]), short_name(shas[m.after])
        find = " --find fix" if context.goal.find == "fix" else ""
        command = f"perfbisect start{find} --{terms.old} {before} --{terms.new} {after} --scan"
        texts.append(
            f"The level at {at} does not fit: {change(m.size)} beside what is proven. There may be {two} "
            f"between {before} and {after}: '{command}', with the other options as here, looks for them."
        )
    return tuple(texts)
