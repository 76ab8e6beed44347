"""The estimate of a planned bisection: how it scales, and what it supposes."""

from __future__ import annotations

import pytest

from bisector.errors import RequestError
from bisector.model.goal import Goal, Metric, TestbedClock, Threshold
from bisector.simulation.estimate import Estimate, estimate
from bisector.stats.variance_components import VarianceComponents


def estimated(
    candidates: int,
    *,
    clock: TestbedClock = "wall",
    noise: VarianceComponents | None = None,
    threshold: Threshold | None = None,
    testbeds: int = 1,
    modelled: bool = False,
) -> Estimate:
    metric = Metric("real", "s", "lower", threshold or Threshold(0.05))
    goal = Goal(metric, clock=clock, modelled=modelled)
    return estimate(
        candidates,
        goal,
        build_seconds=60.0,
        boot_seconds=10.0,
        run_seconds=1.0,
        noise=noise,
        testbeds=testbeds,
        bisections=2,
    )


def test_each_further_halving_of_a_large_range_costs_the_same() -> None:
    small, larger, largest = (estimated(n) for n in (64, 128, 512))
    step = larger.seconds.mean - small.seconds.mean
    assert step > 60.0  # at least one more build
    assert largest.seconds.mean - small.seconds.mean == pytest.approx(3 * step)
    assert largest.builds.p90 - small.builds.p90 == pytest.approx(3 * (larger.builds.p90 - small.builds.p90))


def test_more_noise_costs_more_and_is_named() -> None:
    quiet = estimated(16, noise=VarianceComponents(0.005, 30.0, 0.0, 9.0))
    loud = estimated(16, noise=VarianceComponents(0.1, 30.0, 0.05, 9.0))
    assert loud.runs.mean > quiet.runs.mean
    assert any("runs spread 10%, boots 5%" in text for text in loud.assumptions)


def test_what_is_not_known_is_supposed_in_words() -> None:
    assert any("runs spread as much as the threshold" in text for text in estimated(8).assumptions)
    exact = estimated(8, clock="instructions").assumptions
    assert "the instruction clock repeats exactly" in exact
    modelled = estimated(8, clock="instructions", modelled=True).assumptions
    assert any("runs spread as much as the threshold" in text for text in modelled)
    absolute = estimated(8, threshold=Threshold(2.0, relative=False)).assumptions
    assert "the absolute threshold is about 5% of the level" in absolute


def test_several_testbeds_end_sooner() -> None:
    assert estimated(32, testbeds=3).wall.mean < estimated(32).wall.mean


def test_a_range_without_candidates_is_refused() -> None:
    with pytest.raises(RequestError):
        estimated(0)
