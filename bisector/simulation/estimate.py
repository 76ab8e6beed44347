"""Estimate the cost of a planned bisection from a few simulated ones, for `perfbisect plan`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bisector.model.decisions import Purpose
from bisector.model.goal import Goal
from bisector.simulation.batch import simulate_all
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import Culprit, Scenario
from bisector.simulation.summary import Distribution, PurposeUse, SimulationSummary, summarise
from bisector.stats.variance_components import VarianceComponents

SIMULATED_BISECTIONS = 5
"""A mean within a fifth in one or two seconds of CPU time: `plan` is used interactively."""
_MAX_SIMULATED_COMMITS = 64
"""Larger ranges are simulated at this size; each further halving adds the mean cost of one halving."""
_EFFECT_PER_THRESHOLD = 2.0
"""The effect, in thresholds. It is unknown before the search; people usually notice twice the threshold."""
_CLOCK_BACKGROUND_PER_THRESHOLD = 0.1
"""Under the instruction clock commits differ a little: sd over the whole range, in thresholds."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Expected use of the lab. seconds: all builds, boots and runs; wall: from start to end.

    by_purpose: means; assumptions: what was not known and is supposed, in words.
    """

    builds: Distribution
    boots: Distribution
    runs: Distribution
    seconds: Distribution
    wall: Distribution
    by_purpose: Mapping[Purpose, PurposeUse]
    assumptions: tuple[str, ...]


def estimate(
    candidates: int,
    goal: Goal,
    *,
    build_seconds: float,
    boot_seconds: float,
    run_seconds: float,
    noise: VarianceComponents | None = None,
    testbeds: int = 1,
    bisections: int = SIMULATED_BISECTIONS,
    seed: int = 1,
) -> Estimate:
    """Simulate a search of so many candidates with the real planner. noise: from a calibration.

    An absolute threshold is taken as 5% of a level that nobody has measured yet. Raises RequestError for a
    range without candidates or impossible costs.
    """
    threshold = goal.metric.threshold
    limit = 100 * threshold.value if threshold.relative else 5.0
    assumptions = [f"the effect is {_EFFECT_PER_THRESHOLD:g} times the threshold"]
    if not threshold.relative:
        assumptions.append("the absolute threshold is about 5% of the level")
    run_noise, boot_noise, background = limit, 0.0, 0.0
    if goal.exact:
        run_noise, background = 0.0, _CLOCK_BACKGROUND_PER_THRESHOLD * limit
        if noise is None:
            assumptions.append("the instruction clock repeats exactly")
    if noise is not None:
        run_noise, boot_noise = 100 * noise.run_sd, 100 * noise.boot_sd
        assumptions.append(
            f"runs spread {run_noise:.2g}%, boots {boot_noise:.2g}%, as 'perfbisect calibrate' measured"
        )
    elif not goal.exact:
        assumptions.append("runs spread as much as the threshold ('perfbisect calibrate' would measure it)")
    scenario = Scenario(
        commits=min(candidates, _MAX_SIMULATED_COMMITS),
        culprits=(Culprit(_EFFECT_PER_THRESHOLD * limit),),
        threshold=limit,
        alpha=goal.alpha,
        testbeds=testbeds,
        lab=LabModel(
            run_noise=min(run_noise, 100.0),
            boot_noise=min(boot_noise, 100.0),
            background=background,
            better=goal.metric.better,
            clock="instructions" if goal.exact else "wall",
            build_seconds=build_seconds,
            boot_seconds=boot_seconds,
            run_seconds=run_seconds,
        ),
        budget=goal.budget,
    )
    summary = summarise(simulate_all(scenario, bisections, seed))
    more = max(0.0, math.log2(candidates / _MAX_SIMULATED_COMMITS))
    halving = _per_halving(summary, math.log2(max(2, scenario.commits)))
    return Estimate(
        builds=_plus(summary.builds, more * halving.builds),
        boots=_plus(summary.boots, more * halving.boots),
        runs=_plus(summary.runs, more * halving.runs),
        seconds=_plus(summary.cost, more * halving.cost),
        wall=_plus(
            summary.wall_time, more * halving.cost * summary.wall_time.mean / max(summary.cost.mean, 1e-9)
        ),
        by_purpose={
            purpose: _with_halvings(use, halving, more if purpose == "search" else 0.0)
            for purpose, use in summary.by_purpose.items()
        },
        assumptions=tuple(assumptions),
    )


def _per_halving(summary: SimulationSummary, halvings: float) -> PurposeUse:
    search = summary.by_purpose["search"]
    return PurposeUse(**{name: value / halvings for name, value in search.model_dump().items()})


def _with_halvings(use: PurposeUse, halving: PurposeUse, more: float) -> PurposeUse:
    return PurposeUse(
        **{name: value + more * getattr(halving, name) for name, value in use.model_dump().items()}
    )


def _plus(spread: Distribution, more: float) -> Distribution:
    return Distribution(**{name: value + more for name, value in spread.model_dump().items()})
