"""SearchContext: one state with everything that the planner derives from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from bisector.model.dag import CommitDag, Mask
from bisector.model.decisions import Measure, Purpose
from bisector.model.state import State, Visit
from bisector.search.design_matrix import first_with_same_binary
from bisector.search.measurement import Readings, reads_in_logarithms, summarise_visits
from bisector.search.metric.metric_steps import MetricStep, metric_step
from bisector.search.noise_priors import binary_spreads, boot_spreads
from bisector.search.posterior import Posterior
from bisector.search.seeds.copied_boots import MAX_EXACT_RUN_SD, boots_repeat, without_copies
from bisector.search.sequential_test import EffectPrior, Evidence, Side, SpreadHypothesis, compare_sides
from bisector.stats.variance_components import VarianceComponents

UNMEASURED_BUILD, UNMEASURED_BOOT, UNMEASURED_RUN = 60.0, 10.0, 1.0
"""Seconds assumed before the first was timed. Only the ratios matter: those of an emulated guest."""


def _mean(values: tuple[float, ...], default: float) -> float:
    return sum(values) / len(values) if values else default


def summarised(context: SearchContext) -> Readings | None:
    """Return the visits of a context, summarised; None before the first sample."""
    return summarise_visits(context.state, context.calibrated_noise, log=context.logarithmic)


class SearchContext:
    """One state, prepared for a decision. Costs are expected seconds.

    state: without visits that are copies of others; costs and records are of all boots. wants_fresh_seeds:
    whether the next boots need random numbers of their own (`copied_boots`).
    """

    def __init__(
        self,
        state: State,
        dag: CommitDag,
        calibrated_noise: VarianceComponents | None = None,
        whole: SearchContext | None = None,
        summarise: Callable[[SearchContext], Readings | None] | None = None,
    ) -> None:
        """whole: the context whose visits are those of the state, and more; it has none of the copies.
        summarise: returns what `summarised` does, where that may be known already."""
        if whole is None:
            state, self.wants_fresh_seeds = without_copies(state, calibrated_noise)
        else:
            self.wants_fresh_seeds = whole.wants_fresh_seeds
        self._summarise = summarise or summarised
        self.state = state
        self.dag = dag
        self.calibrated_noise = calibrated_noise
        self.graph = state.graph
        self.goal = state.goal
        self.alpha = state.goal.alpha
        costs = state.costs
        # A build from the cache costs nothing, and later builds may be cached, too. Rule of succession, with
        # two compiled kernels as the prior count.
        compiled = min(1.0, (len(costs.builds) + 2) / (len(state.binaries) + 2))
        self.build_cost = compiled * _mean(costs.builds, UNMEASURED_BUILD)
        self.boot_cost = _mean(costs.boots, UNMEASURED_BOOT)
        self.visit_cost = self.build_cost + self.boot_cost
        self.run_cost = max(_mean(costs.runs, UNMEASURED_RUN), 1e-6)

    @cached_property
    def readings(self) -> Readings | None:
        """Return the visits, summarised; None before the first sample."""
        return self._summarise(self)

    @cached_property
    def logarithmic(self) -> bool:
        """Return whether levels are logarithms.

        A part of the visits takes the units of the whole, because what the two tell is added and subtracted.
        """
        return reads_in_logarithms(self.state)

    @property
    def measured(self) -> Readings:
        """Return the readings; the caller knows that there is a sample."""
        assert self.readings is not None
        return self.readings

    @cached_property
    def exact_clock(self) -> bool:
        """Return whether equal boots read equal numbers: the clock promises it, and no two boots deny it.

        A search may start cheaply by the promise. But a guest that counts instructions may still differ from
        boot to boot, by its seed of random numbers or by a device. From the first two boots of one binary
        that differ on, of any commit, boots count as scattering ones in all comparisons. So they do where the
        runs of one boot scatter.
        """
        r = self.readings if self.goal.exact else None
        return self.goal.exact and (
            r is None or (not self.runs_scatter and boots_repeat(self.state, r.scale))
        )

    @property
    def runs_scatter(self) -> bool:
        """Return whether the runs of one boot scatter too much for a clock that should be exact."""
        r = self.readings if self.goal.exact else None
        return r is not None and r.run_sd >= MAX_EXACT_RUN_SD * r.scale.threshold

    def seeded(self, trial: Measure) -> Measure:
        """Return a trial that gives a new boot fresh random numbers where boots need them.

        Under an exact clock each further boot of a binary needs them: what differs with the seed alone would
        be the same in all boots with one seed, and look exact.
        """
        binary = self._binary(trial.commit, trial.layout)
        again = self.goal.exact and any(self._binary(v.commit, v.layout) == binary for v in self.state.visits)
        return replace(trial, fresh_seed=(self.wants_fresh_seeds or again) and trial.boot is None)

    def _binary(self, commit: int, layout: int) -> object:
        return self.state.binaries.get((commit, layout), (commit, layout))

    @cached_property
    def data_key(self) -> tuple[object, ...]:
        """Return a key of the data that posteriors and comparisons depend on, of one graph and goal."""
        s = self.state
        marks = tuple(sorted(s.marks.items()))
        return self.readings_key, len(s.binaries), len(s.untestable), s.no_layouts, marks

    @cached_property
    def readings_key(self) -> tuple[bool, bool, tuple[tuple[str, int], ...]]:
        """Return a key of the readings: whether they are exact, whether they are logarithms, and (boot,
        samples) of each visit with some."""
        samples = tuple((v.boot, len(v.samples)) for v in self.state.visits if v.samples)
        return self.exact_clock, self.logarithmic, samples

    @cached_property
    def first_same_binary(self) -> dict[int, int]:
        """Return for each built commit the first commit with the same binary.

        A commit that builds but does not boot is left out: it says nothing about levels. One that was
        measured before it failed, or was skipped, does.
        """
        known = {v.commit for v in self.state.visits if v.samples}
        binaries = self.state.binaries.items()
        return first_with_same_binary(
            {(c, layout): name for (c, layout), name in binaries if c in known or self.testable(c)}
        )

    @cached_property
    def metric_step(self) -> MetricStep | None:
        """Return the step of the metric; None where it has none."""
        r = self.readings
        return None if r is None else metric_step(self.state, r.scale)

    @property
    def hidden_by_rounding(self) -> float:
        """Return the standard deviation, in worse units, of a level that no number of runs averages away."""
        return 0.0 if self.metric_step is None else self.metric_step.hidden

    @property
    def threshold(self) -> float:
        """Return the goal's threshold in worse units."""
        return self.measured.scale.threshold

    def testable(self, commit: int) -> bool:
        """Return whether nothing is known that prevents a test of this commit."""
        return commit not in self.state.untestable

    @cached_property
    def testable_mask(self) -> Mask:
        """Return the mask (n,) of the testable commits. Do not change it."""
        mask = np.ones(self.dag.n, dtype=bool)
        mask[list(self.state.untestable)] = False
        return mask

    def live_visit(self, purpose: Purpose) -> Visit | None:
        """Return the live boot on the asking testbed, if it was made for this purpose."""
        busy = {m.boot for m in self.state.pending}
        for visit in reversed(self.state.visits):
            if visit.live and self._here(visit) and visit.boot not in busy:
                return visit if visit.purpose == purpose and self.testable(visit.commit) else None
        return None

    def _here(self, visit: Visit) -> bool:
        return self.state.idle is None or visit.testbed == self.state.idle

    @property
    def testbed(self) -> int | None:
        """Return the index of the asking testbed in the readings; None if it has measured nothing.

        If no testbed in particular asks, it is the one with the most visits.
        """
        r = self.measured
        idle = self.state.idle
        if idle is None:
            return int(np.bincount(r.testbed).argmax())
        return r.testbeds.index(idle) if idle in r.testbeds else None

    def boots(self, commit: int, purpose: Purpose) -> list[Visit]:
        """Return a commit's visits with samples for a purpose, oldest first."""
        return list(self._boots.get((commit, purpose), ()))

    def booted(self, purpose: Purpose) -> list[int]:
        """Return the commits that have visits with samples for a purpose, in the order of their first one."""
        return [commit for commit, of in self._boots if of == purpose]

    @cached_property
    def _boots(self) -> dict[tuple[int, Purpose], list[Visit]]:
        found: dict[tuple[int, Purpose], list[Visit]] = {}
        for v in self.state.visits:
            if v.samples:
                found.setdefault((v.commit, v.purpose), []).append(v)
        return found

    def comparison_sides(self, before: int, after: int, chosen: np.ndarray) -> tuple[Side, Side] | None:
        """Return the two sides of a comparison; None unless a testbed has measured both.

        chosen: mask (V,) of the readings to use.
        """
        r = self.readings
        if r is None:
            return None
        masks = [chosen & (r.commit == c) for c in (before, after)]
        common = set(r.testbed[masks[0]].tolist()) & set(r.testbed[masks[1]].tolist())
        if not common:
            return None
        inside = np.isin(r.testbed, sorted(common))
        result = []
        for m in masks:
            m &= inside
            _, binary = np.unique(r.layout[m], return_inverse=True)
            result.append(Side(r.location[m], r.precision[m], binary, r.testbed[m], r.boot_ratio[m]))
        return result[0], result[1]

    def compare(
        self, before: Side, after: Side, spreads: list[SpreadHypothesis], effect_prior: EffectPrior
    ) -> Evidence:
        """Compare two sides, with the threshold, the alpha and the run noise of this context."""
        r = self.measured
        one, other = (np.bincount(s.testbed, s.precision, len(r.testbeds)) for s in (before, after))
        information = one * other / np.maximum(one + other, 1e-300)
        return compare_sides(
            before,
            after,
            spreads,
            r.noise.pooled_df(information, r.run_df),
            effect_prior,
            threshold=self.threshold,
            resolution=self.resolution,
            alpha=self.alpha,
            # Four boots may look alike by chance, and would not tell what has been seen elsewhere.
            boots_scatter=not self.exact_clock if self.goal.exact else (r.tails is not None or None),
        )

    def spread_hypotheses(self, posterior: Posterior | None) -> list[SpreadHypothesis]:
        """Return possible spreads between boots and binaries: the posterior's, mixed with the prior."""
        r = self.measured
        prior = list(boot_spreads(r))
        if self.calibrated_noise is not None and self.calibrated_noise.boot_df >= 1:
            ratio = self.calibrated_noise.boot_sd / max(self.calibrated_noise.run_sd, 1e-12)
            near = [(f * ratio * r.run_sd, p) for f, p in ((0.6, 0.25), (1.0, 0.5), (1.6, 0.25))]
            prior = [(b, 0.2 * p) for b, p in prior] + [(b, 0.8 * p) for b, p in near]
        if posterior is None:
            return [SpreadHypothesis(b, 0.0, p) for b, p in prior]
        found = [
            SpreadHypothesis(n.boot, n.binary, 0.6 * float(w))
            for n, w in zip(posterior.fits.noises, posterior.weights, strict=True)
        ]
        # The search measures each binary only a little, so it seldom learns how far binaries scatter.
        units = binary_spreads(r, posterior.design.effect)
        return found + [SpreadHypothesis(b, u, 0.4 * p * q) for b, p in prior for u, q in units]

    @property
    def can_vary_layout(self) -> bool:
        """Return whether another code layout of a commit can help. It cannot under an exact clock, which does
        not see layouts, nor where a build of another layout has failed, or nothing is built."""
        return not self.goal.exact and not self.state.no_layouts and self.goal.unit == "commit"

    @property
    def resolution(self) -> float:
        """Return the standard deviation, in worse units, below which nothing is resolved."""
        return self.measured.resolution
