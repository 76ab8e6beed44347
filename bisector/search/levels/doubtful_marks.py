"""Marks of people that measured levels contradict.

A mark is taken as true and no trial tests it. With a wrong one the culprit is none of the commits that are
left, and the search ends with a loss that is spread, or without an answer.
"""

from __future__ import annotations

import math

from scipy.special import ndtri

from bisector.model.commit_graph import short_name
from bisector.model.format import change
from bisector.search.cache import PlannerCache
from bisector.search.context import SearchContext
from bisector.search.levels.level_profile import MAX_DRIFT_PER_THRESHOLD, MeasuredLevel, measured_levels

MAX_DOUBTFUL = 3
"""Marks that a conclusion names."""


def mark_warnings(context: SearchContext, cache: PlannerCache, effect: float) -> tuple[str, ...]:
    """Return the warnings about marks that do not fit what was measured, in the order of history.

    A commit that is marked bad, or one behind it, must not read like good, nor one that is marked good, or
    one before it, like bad: nearer to the wrong end by more standard deviations than the largest of so many
    normal values with probability alpha. None where levels of different times do not compare. The noise is
    that of a search without marks: with one, what contradicts it is taken for noise. effect: a culprit's, in
    worse units.
    """
    marks, graph, dag = context.state.marks, context.graph, context.dag
    if not marks:
        return ()
    context = cache.without_marks(context)
    posterior = cache.posterior(context, (), effect)
    if posterior.noise_rms("drift") > MAX_DRIFT_PER_THRESHOLD * context.threshold:
        return ()
    levels = {x.commit: x for x in measured_levels(context, posterior) if not dag.fork_base(x.commit)}
    ends = {graph.good, graph.bad}
    if not ends <= levels.keys():
        return ()
    inner = [x for c, x in levels.items() if c not in ends and context.testable(c)]
    good, bad = levels[graph.good], levels[graph.bad]
    least = -float(ndtri(context.alpha / (2 * max(len(inner), 1))))
    # Half of the ends' difference has a quarter of the variance of each end.
    shared = good.sd**2 / 4 + bad.sd**2 / 4 + 1.5 * posterior.noise_rms("binary") ** 2
    shared += 2 * (context.resolution**2 + context.hidden_by_rounding**2)
    sign = math.copysign(1.0, bad.level)
    near_good = {
        x.commit: sign * (bad.level / 2 - x.level) / math.sqrt(max(x.sd**2 + shared, 1e-24)) for x in inner
    }
    texts = []
    for mark, verdict in sorted(marks.items()):
        if verdict == "bad":
            doubts = {c: near for c, near in near_good.items() if dag.is_ancestor(mark, c)}
        else:
            doubts = {c: -near for c, near in near_good.items() if dag.is_ancestor(c, mark)}
        worst = max(doubts, key=lambda c: doubts[c], default=mark)
        if doubts.get(worst, 0.0) > least:
            texts.append(_warning(context, mark, verdict, levels[worst], bad))
    return tuple(texts[:MAX_DOUBTFUL])


def _warning(
    context: SearchContext, mark: int, verdict: str, worst: MeasuredLevel, bad: MeasuredLevel
) -> str:
    terms, shas, scale = context.goal.terms, context.graph.shas, context.measured.scale
    side, where = (terms.new, "after") if verdict == "bad" else (terms.old, "before")
    which = "it" if worst.commit == mark else f"{short_name(shas[worst.commit])} {where} it"
    reads, of = (change(scale.around(x.level, x.sd)) for x in (worst, bad))
    return (
        f"The mark of {short_name(shas[mark])} as {side} does not fit: {which} reads {reads} of {of}. "
        "No trial tests a mark: if it is wrong, so is this result. 'perfbisect start' without it begins "
        "anew, with the kernels that are there."
    )
