"""Results that the planner keeps between decisions.

Each result depends only on a part of the state. A search that was stopped and resumed therefore decides
exactly as one that ran through.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, TypeVar

from bisector.model.commit_graph import CommitGraph
from bisector.model.dag import CommitDag
from bisector.model.state import State, Visit
from bisector.search.context import SearchContext, summarised
from bisector.search.design_matrix import DesignMatrix, NoiseHypothesis, build_design
from bisector.search.measurement import Readings
from bisector.search.noise_screening import screen_noise_hypotheses
from bisector.search.posterior import (
    CULPRIT_COUNT_LOG_PRIOR,
    FURTHER_COUNT_LOG_PRIOR,
    SCAN_COUNT_LOG_PRIOR,
    Posterior,
    compute_posterior,
)
from bisector.search.predictive import ratio_in_tails, tails_of_boots
from bisector.stats.student_t import BootTails
from bisector.stats.variance_components import VarianceComponents

SCREENING_GROWTH = 1.3
"""Noise hypotheses are screened again each time the number of visits has grown by this factor."""
MAX_RESULTS = 256
"""Small results kept; the least recently used one goes first."""
MAX_POSTERIORS = 8
"""Posteriors kept; each holds large matrices. Needed at one time: the current one, and one for each suspect
whose certificate has begun."""
MAX_READINGS = 32
"""Readings of parts of the visits kept: two for each suspect whose certificate has begun, a few others."""
MAX_DESIGNS = 4
"""Designs kept. A decision needs two for all visits, and two for those up to the last checkpoint."""

T = TypeVar("T")
Proven = tuple[tuple[int, ...], ...]
"""The commits of each change proven so far."""


class PlannerCache:
    """Posteriors and other results for one commit graph."""

    def __init__(self, graph: CommitGraph, calibrated_noise: VarianceComponents | None) -> None:
        self.graph = graph
        self.dag = CommitDag(graph)
        self.calibrated_noise = calibrated_noise
        self._results: OrderedDict[object, Any] = OrderedDict()
        self._posteriors: OrderedDict[object, Any] = OrderedDict()
        self._designs: OrderedDict[object, Any] = OrderedDict()
        self._readings: OrderedDict[object, Any] = OrderedDict()

    def context(self, state: State) -> SearchContext:
        """Return the state, prepared for a decision."""
        return SearchContext(state, self.dag, self.calibrated_noise)

    def restrict(self, context: SearchContext, visits: tuple[Visit, ...]) -> SearchContext:
        """Return the context with only some of its visits, in their order; no trial is under way there."""
        if len(visits) == len(context.state.visits):
            return context
        return self._part(context, replace(context.state, visits=visits, pending=(), idle=None))

    def only_on(self, context: SearchContext, testbeds: Collection[str]) -> SearchContext:
        """Return the context with the visits of some testbeds only; what is under way stays."""
        visits = tuple(v for v in context.state.visits if v.testbed in testbeds)
        return self._part(context, replace(context.state, visits=visits))

    def without_marks(self, context: SearchContext) -> SearchContext:
        """Return the context without marks."""
        return self._part(context, replace(context.state, marks={}))

    def _part(self, whole: SearchContext, state: State) -> SearchContext:
        """Return the context of a part of the visits. The whole tells which are copies, whether boots repeat,
        and whether levels are logarithms."""
        part = SearchContext(state, self.dag, self.calibrated_noise, whole, self._summarise)
        part.exact_clock = whole.exact_clock
        part.logarithmic = whole.logarithmic
        return part

    def _summarise(self, part: SearchContext) -> Readings | None:
        """Return the readings of a part: most parts end before the latest visit, and stay as they are."""
        return _get_or_compute(self._readings, MAX_READINGS, part.readings_key, lambda: summarised(part))

    def get_or_compute(self, key: object, compute: Callable[[], T]) -> T:
        """Return the result for a key. key: holds everything that the computation depends on."""
        return _get_or_compute(self._results, MAX_RESULTS, key, compute)

    def posterior(self, context: SearchContext, proven: Proven, effect: float) -> Posterior:
        """Return the posterior given all visits of a context. effect: scale of effects in worse units."""
        key = (context.data_key, proven, effect)
        return _get_or_compute(
            self._posteriors, MAX_POSTERIORS, key, lambda: self._compute_posterior(context, proven, effect)
        )

    def until_checkpoint(self, context: SearchContext) -> SearchContext:
        """Return the context with the visits up to the last checkpoint only; noise is judged anew by them.

        The latest visit and later builds are left out: that visit may get more runs, builds say nothing about
        noise, and each would have it judged again. Where the goal's clock is exact a visit has a run or two,
        and what the latest one shows of noise counts at once: without it searches among seven changes ended
        early.
        """
        visits = [v for v in context.state.visits if v.samples]
        settled = len(visits) if context.goal.exact else len(visits) - 1
        checkpoint = 2
        while (following := max(checkpoint + 1, int(checkpoint * SCREENING_GROWTH))) <= settled:
            checkpoint = following
        s = context.state
        return self._part(context, State(s.graph, s.goal, visits=tuple(visits[:checkpoint]), marks=s.marks))

    def design(
        self,
        context: SearchContext,
        proven: Proven,
        effect: float,
        *,
        drifts: bool,
        judged: SearchContext | None = None,
    ) -> DesignMatrix:
        """Return the design of all visits of a context.

        drifts: whether drift in time is considered; judged: the visits that tell whether boots have heavy
        tails, those up to the last checkpoint by default. Where they have, a boot far from the level of its
        commit counts less. Which commits have which level is open, so its distance is the one expected by the
        posterior that weighs boots only by the others of their binary: one step of variational Bayes (Tipping
        and Lawrence 2005). A second step made searches in recorded noise 2% dearer.
        """
        part = judged or self.until_checkpoint(context)
        design = self._plain_design(context, proven, effect, drifts=drifts)
        tails = self._tails(part, proven, effect)
        if tails is None:
            return design
        key = ("ratio in tails", context.data_key, part.data_key, proven, effect)
        ratio = self.get_or_compute(
            key, lambda: ratio_in_tails(self._plain_posterior(context, proven, effect, part), tails)
        )
        return replace(design, readings=replace(design.readings, boot_ratio=ratio))

    def _compute_posterior(self, context: SearchContext, proven: Proven, effect: float) -> Posterior:
        part = self.until_checkpoint(context)
        noises = self._noises(part, proven, effect)
        drifts = any(n.drift for n in noises)
        return compute_posterior(self.design(context, proven, effect, drifts=drifts, judged=part), noises)

    def _noises(self, part: SearchContext, proven: Proven, effect: float) -> tuple[NoiseHypothesis, ...]:
        """Return the noise hypotheses to keep, screened on the visits up to a checkpoint."""
        if self._tails(part, proven, effect) is None:
            return self._plain_noises(part, proven, effect)
        return self.get_or_compute(
            ("noises in tails", part.data_key, proven, effect),
            lambda: screen_noise_hypotheses(
                self.design(part, proven, effect, drifts=False, judged=part),
                self.design(part, proven, effect, drifts=True, judged=part),
            ),
        )

    def _tails(self, part: SearchContext, proven: Proven, effect: float) -> BootTails | None:
        """Return the heavy tails that boots have by the visits up to a checkpoint."""
        if part.goal.exact:  # boots repeat, or differ by their seeds only
            return None
        return self.get_or_compute(
            ("tails", part.data_key, proven, effect),
            lambda: tails_of_boots(self._plain_posterior(part, proven, effect, part)),
        )

    def _plain_posterior(
        self, context: SearchContext, proven: Proven, effect: float, part: SearchContext
    ) -> Posterior:
        """Return the posterior that weighs boots only by the others of their binary."""
        noises = self._plain_noises(part, proven, effect)
        drifts = any(n.drift for n in noises)
        return compute_posterior(self._plain_design(context, proven, effect, drifts=drifts), noises)

    def _plain_noises(
        self, part: SearchContext, proven: Proven, effect: float
    ) -> tuple[NoiseHypothesis, ...]:
        return self.get_or_compute(
            ("noises", part.data_key, proven, effect),
            # One binary executes the same number of instructions at any time: no drift.
            lambda: screen_noise_hypotheses(
                self._plain_design(part, proven, effect, drifts=False),
                None if part.goal.exact else self._plain_design(part, proven, effect, drifts=True),
            ),
        )

    def _plain_design(
        self, context: SearchContext, proven: Proven, effect: float, *, drifts: bool
    ) -> DesignMatrix:
        blocks = _blocks(context) if drifts else 1
        key = (context.data_key, proven, effect, blocks)
        return _get_or_compute(
            self._designs, MAX_DESIGNS, key, lambda: _build_design(context, proven, effect, blocks)
        )


def _get_or_compute(
    results: OrderedDict[object, Any], max_results: int, key: object, compute: Callable[[], T]
) -> T:
    if key not in results:
        results[key] = compute()
        if len(results) > max_results:
            results.popitem(last=False)
    results.move_to_end(key)
    result: T = results[key]
    return result


def _blocks(context: SearchContext) -> int:
    """Return the number of time blocks for which cells are separate where drift is considered."""
    return max(1, min(16, len(context.state.visits) // 3))


def _build_design(context: SearchContext, proven: Proven, effect: float, blocks: int) -> DesignMatrix:
    first = FURTHER_COUNT_LOG_PRIOR if proven else CULPRIT_COUNT_LOG_PRIOR
    count_log_prior = SCAN_COUNT_LOG_PRIOR if context.goal.scan else first
    return build_design(
        context.dag,
        context.measured,
        same=context.first_same_binary,
        marks=context.state.marks,
        proven=proven,
        effect=effect,
        blocks=blocks,
        count_log_prior=count_log_prior,
    )
