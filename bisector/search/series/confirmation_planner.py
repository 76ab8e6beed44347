"""The planner of a confirmation: `suspect_test`, for a bisection of two commits without any in between."""

from __future__ import annotations

from bisector.model.dag import CommitDag
from bisector.model.decisions import Conclusion, Decision, Ending, Interval
from bisector.model.format import change
from bisector.model.state import State
from bisector.search.context import SearchContext
from bisector.search.levels.data_warnings import warnings
from bisector.search.limits import effort
from bisector.search.series.suspect_test import FALSE_CONFIRMATION_RATE, SuspectVerdict, next_step
from bisector.stats.variance_components import VarianceComponents

_ENDINGS = {
    "confirmed": Ending.CONFIRMED,
    "rejected": Ending.REJECTED,
    "undecided": Ending.INCONCLUSIVE,
}
_WORDS = {
    "confirmed": "The level moved by {change}: {reason} made for this show it.",
    "rejected": "The level did not become {worse} by the threshold{but}: {change} by {reason} made for this.",
    "undecided": "Whether the level moved is not known, {change}: {reason}.",
}


class ConfirmationPlanner:
    """Decides which of last good (good) and tip (bad) is booted next, and when the answer is known.

    Only a conclusion with a `total` is an answer, be it that all boots do not decide.
    """

    def __init__(self, calibrated_noise: VarianceComponents | None = None) -> None:
        """calibrated_noise: of the nights of the series."""
        self._noise = calibrated_noise

    def next(self, state: State) -> Decision:
        """Return the next trial with its reason, or the conclusion."""
        context = SearchContext(state, CommitDag(state.graph), self._noise)
        step = next_step(state, context.dag, self._noise)
        if isinstance(step, SuspectVerdict):
            return _conclude(context, step)
        shortfall = effort.budget_shortfall(context, step)
        return Conclusion(Ending.INCONCLUSIVE, shortfall) if shortfall else context.seeded(step)

    def so_far(self, state: State) -> Conclusion:
        """Return the conclusion; before there is one, that there is none."""
        decision = self.next(state)
        if isinstance(decision, Conclusion):
            return decision
        return Conclusion(Ending.INCONCLUSIVE, "The confirmation has not ended.")


def _conclude(context: SearchContext, verdict: SuspectVerdict) -> Conclusion:
    evidence = verdict.evidence
    if evidence is None:
        why = f"It could not be compared: {verdict.reason}."
        return Conclusion(Ending.INCONCLUSIVE, why)
    total: Interval = context.measured.scale.to_relative_change(
        evidence.low, evidence.estimate, evidence.high
    )
    worse, better = ("worse", "better") if context.goal.find == "regression" else ("better", "worse")
    words = _WORDS[verdict.outcome].format(
        change=change(total),
        reason=verdict.reason,
        worse=worse,
        but=f", but {better}" if evidence.high < 0 else "",
    )
    return Conclusion(
        _ENDINGS[verdict.outcome],
        words,
        total=total,
        confidence=1 - FALSE_CONFIRMATION_RATE if verdict.outcome == "confirmed" else 0.0,
        warnings=warnings(context, None),
    )
