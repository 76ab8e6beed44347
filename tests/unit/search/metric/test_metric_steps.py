"""Metrics in steps: what no number of runs averages away, and a search says so from the first boots on."""

import dataclasses
import math

import numpy as np
import pytest

from bisector.model.decisions import Ending
from bisector.model.goal import Metric, TestbedClock, Threshold
from bisector.search.metric.metric_steps import MetricStep, hidden_by_rounding, in_words
from tests.support.searching import Seen, Value, context_of, drive, goal, linear

STEP = 0.05
"""Of the level; the threshold is 2%."""
GOAL = dataclasses.replace(goal(), metric=Metric("real", "s", "lower", Threshold(0.02)))


def stepped(effect: float, noise: float, seed: int = 1, at: int = 9) -> Value:
    """Return readings in steps of 5% of which no level is at an edge."""
    random = np.random.default_rng(seed)

    def value(commit: int, run: int) -> float:
        read = 100 * (1 + effect * (commit >= at) + noise * random.standard_normal())
        return 100 * STEP * round(read / (100 * STEP))

    return value


def step_of(*boots: tuple[int, tuple[float, ...]], clock: TestbedClock = "wall") -> MetricStep | None:
    visits = [Seen(commit, values) for commit, values in boots]
    return context_of(linear(4), visits, wanted=dataclasses.replace(GOAL, clock=clock))[0].metric_step


@pytest.mark.parametrize("spread", [0.0, 0.1, 0.2, 0.3, 0.5])
def test_what_rounding_hides_is_the_scatter_of_means_about_their_levels(spread: float) -> None:
    """Of 400 levels from one step to the next, each the mean of so many runs that only rounding is left."""
    random = np.random.default_rng(3)
    levels = (np.arange(400) + 0.5) / 400
    read = np.round(levels[:, None] + spread * random.standard_normal((400, 8000)))
    error = read.mean(axis=1) - levels
    within = float(read.var(axis=1).mean())
    assert hidden_by_rounding(1.0, within) == pytest.approx(math.sqrt((error**2).mean()), abs=0.007)


def test_numbers_that_do_not_repeat_have_no_steps() -> None:
    assert step_of((0, (100.1, 100.2, 100.3)), (4, (110.1, 110.2, 110.3))) is None
    assert step_of((0, (100.0,) * 3), (4, (110.0,) * 3), clock="instructions") is None


def test_a_step_is_the_smallest_difference_and_scatter_of_a_step_leaves_nothing_hidden() -> None:
    found = step_of((0, (100.0, 105.0, 100.0, 105.0)), (4, (110.0, 105.0, 105.0, 110.0)))
    assert found is not None
    assert found.size == pytest.approx(math.log(110 / 105))
    assert found.varies == "runs"
    assert found.hidden < 0.2 * found.size / math.sqrt(12)


def test_where_runs_never_differ_all_of_a_step_is_hidden() -> None:
    found = step_of((0, (100.0,) * 3), (4, (110.0,) * 3))
    assert found is not None
    assert found.varies == "binaries"
    assert found.size == pytest.approx(math.log(1.1))
    assert found.hidden == pytest.approx(found.size / math.sqrt(12), rel=0.01)
    equal = step_of((0, (37.5,) * 3), (4, (37.5,) * 3))
    assert equal is not None
    assert equal.varies == "nothing"
    assert equal.size == pytest.approx(math.log(37.6 / 37.5))


def test_only_steps_that_come_near_the_threshold_are_told() -> None:
    context, _ = context_of(linear(4), [Seen(0)], wanted=GOAL)
    scale = context.measured.scale
    assert in_words(None, scale) == ""
    assert in_words(MetricStep(0.4 * scale.threshold, 0.0, "runs"), scale) == ""
    near = MetricStep(0.6 * scale.threshold, 0.0, "runs")
    assert in_words(near, scale).endswith("nearly the threshold: only the mean of many runs tells less")
    above = MetricStep(2 * scale.threshold, 0.5 * scale.threshold, "runs")
    assert in_words(above, scale).endswith("4.04%, more than the threshold: less does not show")


@pytest.mark.parametrize("noise", [0.0, 0.003])
def test_equal_ends_are_not_known_to_be_equal_where_steps_exceed_the_threshold(noise: float) -> None:
    end, _, decisions = drive(linear(16), GOAL, stepped(0.0, noise))
    assert end.ending is Ending.INCONCLUSIVE
    assert "too coarsely" in end.summary
    assert end.total is not None
    assert end.total.low < -0.02
    assert end.total.high > 0.02
    assert "does not show" in decisions[2].reason, "told after the first boot of each end"


def test_a_culprit_is_found_in_steps_and_its_size_known_to_a_step_only() -> None:
    end, _, _ = drive(linear(16), GOAL, stepped(0.1, 0.003))
    (found,) = end.findings
    assert found.commits == (9,)
    assert found.effect.low < 0.1 - STEP / 2
    assert found.effect.high > 0.1 + STEP / 2
    assert any("does not show" in warning for warning in end.warnings)


def test_fine_steps_change_nothing() -> None:
    """Runs that scatter by 1%, printed to 0.1%."""
    random = np.random.default_rng(5)
    read = [tuple(np.round(100 * (1 + 0.01 * random.standard_normal(12)), 1)) for _ in range(2)]
    found = step_of((0, read[0]), (4, read[1]))
    assert found is not None
    assert found.hidden < 1e-6
