"""Does a change mend a loss? Parent, unpatched and patched kernel, interleaved over fresh boots.

Three comparisons are made with the sequential test of the ends: the loss (parent to unpatched), what the
change takes back (patched to unpatched) and what is left (parent to patched).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from bisector.model.dag import CommitDag
from bisector.model.decisions import Conclusion, Decision, Ending, Interval, Measure, Mending
from bisector.model.format import change
from bisector.model.state import State
from bisector.search import endpoints, interleaving
from bisector.search.context import SearchContext
from bisector.search.levels.data_warnings import warnings
from bisector.search.limits import effort
from bisector.search.metric.scale import Scale
from bisector.search.sequential_test import Evidence
from bisector.stats.variance_components import VarianceComponents

PARENT, UNPATCHED, PATCHED = range(3)
"""The commits of the graph, which has no others."""

_NAMES = {PARENT: "the parent", UNPATCHED: "the unpatched kernel", PATCHED: "the patched kernel"}
_COMPARISONS = 3
"""Each spends its share of alpha."""
_MAX_BOOTS = 300
"""Boots of all kernels after which it gives up, a hundred each: what is left may lie at the threshold itself,
and then no number of boots is enough."""
_HALF = 0.5
"""Of a loss. Where that is less than two thresholds, what is gone and what is left may both be smaller than
one: then the larger of them decides."""


@dataclass(frozen=True, slots=True)
class _Comparisons:
    """The comparisons. same: the kernel that the patched one is, byte for byte; None if it is its own."""

    loss: Evidence
    gain: Evidence | None
    rest: Evidence | None
    same: int | None


class MendingPlanner:
    """Decides which of the three kernels is measured next, and when the answer is known."""

    def __init__(self, calibrated_noise: VarianceComponents | None = None) -> None:
        self.calibrated_noise = calibrated_noise

    def next(self, state: State) -> Decision:
        """Return the next trial with its reason, or the conclusion."""
        context = SearchContext(state, CommitDag(state.graph), self.calibrated_noise)
        for commit, name in _NAMES.items():
            if not context.testable(commit):
                why = f"{name.capitalize()} cannot be tested: {state.untestable[commit]}."
                return Conclusion(Ending.INCONCLUSIVE, why)
        same = _same_kernel(state)
        if same == UNPATCHED:
            return Conclusion(
                Ending.NOT_MENDED,
                "The patched kernel is the unpatched one, byte for byte: the change touches nothing that "
                "these kernels are built from.",
            )
        sides = tuple(_NAMES) if same is None else (PARENT, UNPATCHED)
        seen = _compare(context, same)
        if seen is not None and all(_enough(context, commit) for commit in sides):
            ending = _verdict(context, seen)
            if ending is not None:
                return _conclude(context, ending, seen)
        if len(state.visits) >= _MAX_BOOTS:
            return self._unfinished(context, f"{_MAX_BOOTS} boots do not tell.")
        trial = _next_trial(context, sides, seen)
        shortfall = effort.budget_shortfall(context, trial)
        return self._unfinished(context, shortfall) if shortfall else context.seeded(trial)

    def so_far(self, state: State) -> Conclusion:
        """Return the conclusion; before there is one, what the comparisons say so far."""
        decision = self.next(state)
        if isinstance(decision, Conclusion):
            return decision
        context = SearchContext(state, CommitDag(state.graph), self.calibrated_noise)
        return self._unfinished(context, "It has not ended.")

    def _unfinished(self, context: SearchContext, why: str) -> Conclusion:
        seen = _compare(context, _same_kernel(context.state))
        mending = _mending(context, seen) if seen is not None else None
        return Conclusion(Ending.INCONCLUSIVE, why, mending=mending)


def _same_kernel(state: State) -> int | None:
    """Return the commit whose kernel the patched one is, as for a plain revert; None if it is another."""
    patched = state.binaries.get((PATCHED, 0))
    known = (UNPATCHED, PARENT) if patched is not None else ()
    return next((c for c in known if state.binaries.get((c, 0)) == patched), None)


def _compare(context: SearchContext, same: int | None) -> _Comparisons | None:
    """Return the comparisons; None before all of them can be made."""
    loss = endpoints.compare_two(context, PARENT, UNPATCHED)
    if loss is None:
        return None
    if same == PARENT:
        return _Comparisons(loss, loss, None, same)
    gain = endpoints.compare_two(context, PATCHED, UNPATCHED)
    rest = endpoints.compare_two(context, PARENT, PATCHED)
    return None if gain is None or rest is None else _Comparisons(loss, gain, rest, same)


def _enough(context: SearchContext, commit: int) -> bool:
    """Return whether a kernel has the boots and code layouts on which a verdict may rest."""
    boots = context.boots(commit, "certify")
    if len(boots) < interleaving.min_boots_per_side(context, "certify", context.alpha / _COMPARISONS):
        return False
    layouts = {visit.layout for visit in boots}
    return not context.can_vary_layout or len(layouts) >= interleaving.SCATTER_LAYOUTS


def _verdict(context: SearchContext, seen: _Comparisons) -> Ending | None:
    """Return what the comparisons prove; None while they leave it open."""
    need = _needed_log_e(context)

    def small(one: Evidence | None) -> bool:
        return one is None or one.log_e_below >= need

    if small(seen.loss):
        return Ending.NOT_REPRODUCED
    if not _proven(context, seen.loss):
        return None
    gained = _proven(context, seen.gain)
    left = 0.0 if seen.rest is None else seen.rest.estimate / seen.loss.estimate
    if gained and small(seen.rest) and left <= _HALF:
        return Ending.MENDED
    if small(seen.gain) and left >= _HALF:
        return Ending.NOT_MENDED
    return Ending.PARTLY_MENDED if gained and _proven(context, seen.rest) else None


def _needed_log_e(context: SearchContext) -> float:
    """Return the log e-value from which one of the comparisons decides."""
    return math.log(_COMPARISONS / context.alpha)


def _proven(context: SearchContext, one: Evidence | None) -> bool:
    """Return whether a comparison proves a change for the worse."""
    return one is not None and one.log_e_change >= _needed_log_e(context) and one.estimate > 0


def _next_trial(context: SearchContext, sides: tuple[int, ...], seen: _Comparisons | None) -> Measure:
    target = interleaving.FIRST_BOOT_RUNS
    fewest = interleaving.min_boots_per_side(context, "certify", context.alpha / _COMPARISONS)
    if seen is not None and context.measured.run_df >= 4:
        target = interleaving.cheapest_runs_per_boot(context, seen.loss.boot_spreads)
        target = min(target, interleaving.sufficient_runs_per_boot(context, context.threshold, fewest))
    layouts = range(interleaving.SCATTER_LAYOUTS)
    why = "compare the three kernels"
    return interleaving.next_interleaved(context, sides, "certify", target, layouts, why, _NAMES, fewest)


def _mending(context: SearchContext, seen: _Comparisons) -> Mending:
    """Return the comparisons as relative changes of the metric."""
    relative = context.measured.scale.to_relative_change
    loss, gain, rest = seen.loss, seen.gain, seen.rest
    assert gain is not None
    return Mending(
        loss=relative(loss.low, loss.estimate, loss.high),
        gain=relative(-gain.high, -gain.estimate, -gain.low),
        rest=Interval(0.0, 0.0, 0.0) if rest is None else relative(rest.low, rest.estimate, rest.high),
        share=_share(context.measured.scale, loss, rest, context.alpha) if _proven(context, loss) else None,
    )


def _share(scale: Scale, loss: Evidence, rest: Evidence | None, alpha: float) -> Interval:
    """Return how much of a proven loss is gone, by error propagation.

    It is of the metric itself, as the changes beside it: of 10, 40 and 20 s two thirds of the loss are gone,
    of their logarithms half. Both comparisons share the parent, whose errors go together: the interval is
    rather too wide.
    """
    if rest is None:
        return Interval(1.0, 1.0, 1.0)
    lost, kept = (scale.to_relative_change(e.low, e.estimate, e.high).estimate for e in (loss, rest))
    # The derivative of a relative change exp(x) - 1 is 1 plus it.
    lost_sd, kept_sd = (
        e.sd * (1 + change if scale.log else 1 / scale.base) for e, change in ((loss, lost), (rest, kept))
    )
    left = kept / lost
    wide = NormalDist().inv_cdf(1 - alpha / 2) * math.hypot(kept_sd, left * lost_sd) / abs(lost)
    return Interval(1 - left - wide, 1 - left, 1 - left + wide)


def _conclude(context: SearchContext, ending: Ending, seen: _Comparisons) -> Conclusion:
    mending = _mending(context, seen)
    rest = f"the patched kernel differs from the parent by {change(mending.rest)}"
    if seen.same == PARENT:
        rest = "the patched kernel is the parent's, byte for byte"
    gone = f"{mending.gone()} of the loss of {change(mending.loss)} is gone"
    stays = f"The loss of {change(mending.loss)} stays"
    text = {
        Ending.MENDED: f"{gone}: {rest}, less than the threshold.",
        Ending.PARTLY_MENDED: f"{gone}: {rest}.",
        Ending.NOT_MENDED: f"{f'Only {gone}' if _proven(context, seen.gain) else stays}: the change moves "
        f"the metric by {change(mending.gain)}, less than the threshold towards the parent.",
        Ending.NOT_REPRODUCED: f"There is no loss to mend here: the unpatched kernel differs from the parent "
        f"by {change(mending.loss)}, less than the threshold.",
    }[ending]
    return Conclusion(
        ending,
        text,
        confidence=1 - context.alpha,
        warnings=warnings(context, None),
        mending=mending,
    )
