"""Results that a planner keeps between decisions. Each belongs to a part of the state, so nothing depends on
how the state was reached: a resumed search decides exactly as one that was never stopped."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from bisector.model.dag import CommitDag
from bisector.model.records import CommitGraph
from bisector.model.state import State, Visit
from bisector.search.context import SearchContext
from bisector.search.design_matrix import DesignMatrix, build_design
from bisector.search.noise_screening import screen_noise_hypotheses
from bisector.search.posterior import (
    CULPRIT_COUNT_LOG_PRIOR,
    FURTHER_COUNT_LOG_PRIOR,
    SCAN_COUNT_LOG_PRIOR,
    NoiseHypothesis,
    Posterior,
    compute_posterior,
)
from bisector.stats.variance_components import VarianceComponents

SCREENING_GROWTH = 1.3
"""Noise hypotheses are screened anew each time the visits have grown by this factor."""
MAX_RESULTS, MAX_POSTERIORS = 256, 8
"""Results kept, the ones used last. Few beliefs, for each holds large matrices: needed at the same time are
the current one and one for each suspect that has a certificate."""

T = TypeVar("T")
Proven = tuple[tuple[int, ...], ...]


class PlannerCache:
    """Beliefs about parts of one graph's visits."""

    def __init__(self, graph: CommitGraph, library: VarianceComponents | None) -> None:
        self.graph = graph
        self.dag = CommitDag(graph)
        self.calibrated_noise = library
        self._known: OrderedDict[object, Any] = OrderedDict()
        self._posteriors: OrderedDict[object, Any] = OrderedDict()

    def context(self, state: State) -> SearchContext:
        """Return the state ready to decide from."""
        return SearchContext(state, self.dag, self.calibrated_noise)

    def part(self, context: SearchContext, visits: tuple[Visit, ...]) -> SearchContext:
        """Return the same state with only some of its visits, in their order."""
        s = context.state
        if len(visits) == len(s.visits):
            return context
        return self.context(
            State(
                s.graph,
                s.goal,
                records=s.records,
                visits=visits,
                binaries=s.binaries,
                untestable=s.untestable,
                marks=s.marks,
                costs=s.costs,
                no_layouts=s.no_layouts,
            )
        )

    def get_or_compute(self, key: object, work: Callable[[], T]) -> T:
        """Return the result of work for this key, done once. key: says everything that work looks at."""
        return _get_or_compute(self._known, MAX_RESULTS, key, work)

    def posterior(self, context: SearchContext, proven: Proven, effect: float) -> Posterior:
        """Return the posterior given all visits of the view. effect: scale of effects in worse units."""
        key = (context.data_key, proven, effect)
        return _get_or_compute(
            self._posteriors, MAX_POSTERIORS, key, lambda: self._compute_posterior(context, proven, effect)
        )

    def _compute_posterior(self, context: SearchContext, proven: Proven, effect: float) -> Posterior:
        noises = self._screened(context, proven, effect)
        blocks = _blocks(context) if any(n.drift for n in noises) else 1
        return compute_posterior(_build_design(context, proven, effect, blocks), noises)

    def _screened(self, context: SearchContext, proven: Proven, effect: float) -> tuple[NoiseHypothesis, ...]:
        """Return the noise hypotheses worth carrying, screened on the visits up to the last checkpoint."""
        visits = [v for v in context.state.visits if v.samples]
        checkpoint = 2
        while (following := max(checkpoint + 1, int(checkpoint * SCREENING_GROWTH))) <= len(visits):
            checkpoint = following
        # Without what was built since, which says nothing about noise: else every build would screen anew.
        whole = context.state
        part = self.context(
            State(
                whole.graph,
                whole.goal,
                visits=tuple(visits[:checkpoint]),
                marks=whole.marks,
                costs=whole.costs,
            )
        )
        return self.get_or_compute(
            ("noises", part.data_key, proven, effect),
            # Instructions of one binary are the same number at any time of the day.
            lambda: screen_noise_hypotheses(
                _build_design(part, proven, effect, _blocks(part)), drifts=not context.exact_clock
            ),
        )


def _get_or_compute(known: OrderedDict[object, Any], most: int, key: object, work: Callable[[], T]) -> T:
    if key not in known:
        known[key] = work()
        if len(known) > most:
            known.popitem(last=False)
    known.move_to_end(key)
    result: T = known[key]
    return result


def _blocks(context: SearchContext) -> int:
    """Return into how many stretches of time cells are cut where drift is considered."""
    return max(1, min(16, len(context.state.visits) // 3))


def _build_design(context: SearchContext, proven: Proven, effect: float, blocks: int) -> DesignMatrix:
    assert context.readings is not None
    count_log_prior = SCAN_COUNT_LOG_PRIOR if context.goal.scan else CULPRIT_COUNT_LOG_PRIOR
    if proven:
        count_log_prior = FURTHER_COUNT_LOG_PRIOR
    return build_design(
        context.dag,
        context.readings,
        same=context.first_same_binary,
        marks=context.state.marks,
        proven=proven,
        effect=effect,
        blocks=blocks,
        count_log_prior=count_log_prior,
    )
