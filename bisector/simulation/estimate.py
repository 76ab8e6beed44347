"""What a planned bisection will probably cost: a few simulated ones, quick enough for `perfbisect plan`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bisector.model.records import Goal
from bisector.simulation.batch import run_trials
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import Culprit, Scenario
from bisector.simulation.summary import Part, Spread, Summary, summarise
from bisector.stats.variance_components import VarianceComponents

TRIALS = 5
"""Enough for a mean within a fifth, in a second or two of CPU time: `plan` is asked interactively."""
_LARGEST = 64
"""Larger ranges are simulated at this size; every further halving is added at the mean cost of one."""
_EFFECT = 2.0
"""The effect is unknown before the search: twice the threshold is what people usually notice."""
_CLOCK_BACKGROUND = 0.1
"""Under the instruction clock every commit differs a little; their sum, in thresholds."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Expected use of the lab. seconds: all builds, boots and runs; wall: from start to end.

    assumptions: in words, what was not known and is supposed.
    """

    builds: Spread
    boots: Spread
    runs: Spread
    seconds: Spread
    wall: Spread
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
    trials: int = TRIALS,
    seed: int = 1,
) -> Estimate:
    """Simulate a search of so many candidates with the real planner. noise: from a calibration.

    An absolute threshold is taken as 5% of a level that nobody has measured yet. Raises RequestError for a
    range without candidates or costs that cannot be.
    """
    threshold = goal.metric.threshold
    limit = 100 * threshold.value if threshold.relative else 5.0
    assumptions = [f"the effect is {_EFFECT:g} times the threshold"]
    if not threshold.relative:
        assumptions.append("the absolute threshold is about 5% of the level")
    run_noise, boot_noise, background = limit, 0.0, 0.0
    if goal.clock == "instructions":
        run_noise, background = 0.0, _CLOCK_BACKGROUND * limit
        if noise is None:
            assumptions.append("the instruction clock repeats exactly")
    if noise is not None:
        run_noise, boot_noise = 100 * noise.run_sd, 100 * noise.boot_sd
        assumptions.append(
            f"runs spread {run_noise:.2g}%, boots {boot_noise:.2g}%, as 'perfbisect calibrate' measured"
        )
    elif goal.clock != "instructions":
        assumptions.append("runs spread as much as the threshold ('perfbisect calibrate' would measure it)")
    scenario = Scenario(
        commits=min(candidates, _LARGEST),
        culprits=(Culprit(_EFFECT * limit),),
        threshold=limit,
        alpha=goal.alpha,
        testbeds=testbeds,
        lab=LabModel(
            run_noise=min(run_noise, 100.0),
            boot_noise=min(boot_noise, 100.0),
            background=background,
            better=goal.metric.better,
            clock=goal.clock,
            build_seconds=build_seconds,
            boot_seconds=boot_seconds,
            run_seconds=run_seconds,
        ),
        budget=goal.budget,
    )
    summary = summarise(run_trials(scenario, trials, seed))
    more = max(0.0, math.log2(candidates / _LARGEST))
    halving = _per_halving(summary, math.log2(max(2, scenario.commits)))
    return Estimate(
        builds=_plus(summary.builds, more * halving.builds),
        boots=_plus(summary.boots, more * halving.boots),
        runs=_plus(summary.runs, more * halving.runs),
        seconds=_plus(summary.cost, more * halving.cost),
        wall=_plus(
            summary.wall_time, more * halving.cost * summary.wall_time.mean / max(summary.cost.mean, 1e-9)
        ),
        assumptions=tuple(assumptions),
    )


def _per_halving(summary: Summary, halvings: float) -> Part:
    search = summary.by_purpose["search"]
    return Part(**{name: value / halvings for name, value in search.model_dump().items()})


def _plus(spread: Spread, more: float) -> Spread:
    return Spread(**{name: value + more for name, value in spread.model_dump().items()})
