"""What a planner looks at: the state with everything that is derived from it, for one decision."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from bisector.model.dag import CommitDag, Mask
from bisector.model.records import Purpose
from bisector.model.state import State, Visit
from bisector.search.design_matrix import first_with_same_binary
from bisector.search.measurement import RESOLUTION_PER_THRESHOLD, Readings, readings
from bisector.search.noise_priors import binary_spreads, boot_spreads
from bisector.search.posterior import Posterior
from bisector.search.sequential_test import Side, SpreadHypothesis
from bisector.stats.variance_components import VarianceComponents

UNMEASURED_BUILD, UNMEASURED_BOOT, UNMEASURED_RUN = 60.0, 10.0, 1.0
"""Seconds assumed before the first build, boot or run was timed: ratios of an emulated guest."""


def _mean(values: tuple[float, ...], default: float) -> float:
    return sum(values) / len(values) if values else default


class SearchContext:
    """One state, ready to decide from. Costs are expected seconds."""

    def __init__(
        self, state: State, dag: CommitDag, calibrated_noise: VarianceComponents | None = None
    ) -> None:
        self.state = state
        self.dag = dag
        self.calibrated_noise = calibrated_noise
        self.graph = state.graph
        self.goal = state.goal
        self.alpha = state.goal.alpha
        self.exact_clock = state.goal.clock == "instructions"
        costs = state.costs
        # What came from a cache cost nothing, and others may come from there as well: the rule of succession,
        # begun as if two kernels had been compiled.
        compiled = min(1.0, (len(costs.builds) + 2) / (len(state.binaries) + 2))
        self.build_cost = compiled * _mean(costs.builds, UNMEASURED_BUILD)
        self.boot_cost = _mean(costs.boots, UNMEASURED_BOOT)
        self.visit_cost = self.build_cost + self.boot_cost
        self.run_cost = max(_mean(costs.runs, UNMEASURED_RUN), 1e-6)

    @cached_property
    def readings(self) -> Readings | None:
        """Return the summarised visits."""
        return readings(self.state, self.calibrated_noise)

    @cached_property
    def data_key(self) -> tuple[object, ...]:
        """Return what tells this view's data from that of another of the same graph and goal."""
        s = self.state
        return self.sample_counts, len(s.binaries), len(s.untestable), tuple(sorted(s.marks.items()))

    @cached_property
    def sample_counts(self) -> tuple[tuple[str, int], ...]:
        """Return what tells this view's readings from another's."""
        return tuple((v.boot, len(v.samples)) for v in self.state.visits if v.samples)

    @cached_property
    def first_same_binary(self) -> dict[int, int]:
        """Return the first commit with the same binary for each built commit that can be tested.

        One that builds but does not boot says nothing about levels.
        """
        return {
            c: first for c, first in first_with_same_binary(self.state.binaries).items() if self.testable(c)
        }

    @property
    def threshold(self) -> float:
        """Return the threshold in worse units."""
        assert self.readings is not None
        return self.readings.scale.threshold

    def testable(self, commit: int) -> bool:
        """Return whether nothing is known to prevent a test of this commit."""
        return commit not in self.state.untestable

    @cached_property
    def testable_mask(self) -> Mask:
        """Return the commits (n,) that can be tested as far as is known. Do not change it."""
        mask = np.ones(self.dag.n, dtype=bool)
        mask[list(self.state.untestable)] = False
        return mask

    def live_visit(self, purpose: Iterable[Purpose]) -> Visit | None:
        """Return the boot that now lives on the asking testbed, if it was made for one of these purposes."""
        busy = {m.boot for m in self.state.pending}
        for visit in reversed(self.state.visits):
            if visit.live and self._here(visit) and visit.boot not in busy:
                return visit if visit.purpose in purpose and self.testable(visit.commit) else None
        return None

    def _here(self, visit: Visit) -> bool:
        return self.state.idle is None or visit.testbed == self.state.idle

    @property
    def testbed(self) -> int | None:
        """Return the number that the readings give the asking testbed, None where it has measured nothing.

        Where none in particular asks it is the one that has measured most.
        """
        r = self.readings
        assert r is not None
        idle = self.state.idle
        if idle is None:
            return int(np.bincount(r.testbed).argmax())
        return r.testbeds.index(idle) if idle in r.testbeds else None

    def boots(self, commits: Iterable[int], purpose: Purpose, *, here: bool = False) -> list[Visit]:
        """Return the visits of some commits for a purpose, oldest first. here: on the asking testbed."""
        wanted = set(commits)
        return [
            v
            for v in self.state.visits
            if v.commit in wanted and v.purpose == purpose and v.samples and (not here or self._here(v))
        ]

    def comparison_sides(self, before: int, after: int, chosen: np.ndarray) -> tuple[Side, Side] | None:
        """Return the two sides of a comparison, None while one is empty.

        chosen: mask (V,) over the readings. Levels of testbeds are taken out where both sides were seen.
        """
        r = self.readings
        if r is None:
            return None
        masks = [chosen & (r.commit == c) for c in (before, after)]
        common = set(r.testbed[masks[0]].tolist()) & set(r.testbed[masks[1]].tolist())
        if not common:
            return None
        location = r.location.copy()
        inside = np.isin(r.testbed, sorted(common))
        if len(common) > 1:
            for t in common:
                both = [r.location[m & (r.testbed == t)].mean() for m in masks]
                location[r.testbed == t] -= sum(both) / 2
        result = []
        for m in masks:
            m &= inside
            _, binary = np.unique(r.layout[m], return_inverse=True)
            result.append(Side(location[m], r.precision[m], binary))
        return result[0], result[1]

    def spread_hypotheses(self, posterior: Posterior | None) -> list[SpreadHypothesis]:
        """Return the possible spreads between boots and binaries: the belief's, mixed with the prior."""
        r = self.readings
        assert r is not None
        prior = list(boot_spreads(r))
        if self.calibrated_noise is not None and self.calibrated_noise.boot_df >= 1:
            ratio = self.calibrated_noise.boot_sd / max(self.calibrated_noise.run_sd, 1e-12)
            near = [(f * ratio * r.run_sd, p) for f, p in ((0.6, 0.25), (1.0, 0.5), (1.6, 0.25))]
            prior = [(b, 0.2 * p) for b, p in prior] + [(b, 0.8 * p) for b, p in near]
        if posterior is None:
            return [SpreadHypothesis(b, 0.0, p) for b, p in prior]
        found = [
            SpreadHypothesis(n.boot, n.unit, 0.6 * float(w))
            for n, w in zip(posterior.fits.noises, posterior.weights, strict=True)
        ]
        # A search measures each binary a little: it seldom learns how far binaries scatter.
        units = binary_spreads(r, posterior.design.effect)
        return found + [SpreadHypothesis(b, u, 0.4 * p * q) for b, p in prior for u, q in units]

    @property
    def can_vary_layout(self) -> bool:
        """Return whether other code layouts of a commit help: not under an exact clock, which does not see
        them, nor where a build of one has failed."""
        return not self.exact_clock and not self.state.no_layouts

    @property
    def resolution(self) -> float:
        """Return the standard deviation below which nothing is resolved."""
        return RESOLUTION_PER_THRESHOLD * self.threshold
