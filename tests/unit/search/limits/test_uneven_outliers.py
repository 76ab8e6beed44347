"""Outlying boots and runs that one end has more of: which count, what the mean loses, how sure that is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

from bisector.model.goal import Goal, Metric, Threshold
from bisector.search.context import SearchContext
from bisector.search.limits.uneven_outliers import Outliers, in_words, missed, worst_outliers
from tests.support.searching import Seen, context_of, goal, linear

RUNS = (99.9, 100.0, 100.1)
FAR = math.log(1.5)


def boots(
    good: list[float], bad: list[float], wanted: Goal | None = None, testbeds: tuple[str, ...] = ("t",)
) -> SearchContext:
    """Return a context with boots of these levels; the second testbed of two is twice as slow."""
    seen = [
        Seen(
            commit, tuple(level * (1 + k % len(testbeds)) * y / 100 for y in RUNS), "verify", testbed=testbed
        )
        for commit, levels in ((0, good), (8, bad))
        for k, level in enumerate(levels)
        for testbed in [testbeds[k % len(testbeds)]]
    ]
    return context_of(linear(8), seen, wanted=wanted)[0]


SAME = [100.0, 100.1, 99.9, 100.2, 99.8, 100.0]


def counted(outliers: Outliers) -> tuple[str, int, int, int, int]:
    return outliers[:5]


def test_boots_far_on_the_worse_side_are_counted_at_each_end() -> None:
    found = worst_outliers(boots([*SAME, 150.0], [*SAME, 150.0, 150.0, 150.0, 50.0]))
    assert counted(found) == ("boot", 3, 10, 1, 7)
    assert found.excess == pytest.approx(FAR, abs=0.01)
    assert found.loss == pytest.approx((3 / 10 - 1 / 7) * FAR, abs=0.01)


def test_where_higher_is_better_the_low_ones_are_worse() -> None:
    higher = replace(goal(), metric=Metric("real", "s", "higher", Threshold(0.05)))
    found = worst_outliers(boots(SAME, [*SAME, 50.0, 150.0, 150.0], higher))
    assert counted(found) == ("boot", 1, 9, 0, 6)


def test_levels_of_testbeds_are_no_outliers() -> None:
    found = worst_outliers(boots(SAME, [*SAME, 150.0, 150.0], testbeds=("a", "b")))
    assert counted(found) == ("boot", 2, 8, 0, 6)


def test_what_scatters_like_the_others_or_less_than_the_threshold_does_not_lie_apart() -> None:
    wide = [80.0, 90.0, 100.0, 110.0, 120.0]
    assert worst_outliers(boots(wide, [*wide, 150.0])).bad == 0, "four deviations"
    assert worst_outliers(boots(SAME, [*SAME, 104.0])).bad == 0, "4% of a threshold of 5%"
    assert worst_outliers(boots(SAME, [*SAME, 106.0])).bad == 1


def test_runs_far_from_their_boot_are_counted() -> None:
    seen = [Seen(0, RUNS * 3, "verify"), Seen(8, (*RUNS * 3, 200.0, 200.0), "verify")] * 2
    found = worst_outliers(context_of(linear(8), seen)[0])
    assert counted(found) == ("run", 4, 22, 0, 18)
    assert found.excess == pytest.approx(math.log(2), abs=0.01)
    exact = context_of(linear(8), seen, wanted=goal(clock="instructions"))[0]
    assert worst_outliers(exact).what == "boot", "what its runs differ by is a profile"


def test_a_run_without_a_number_is_none() -> None:
    seen = [Seen(c, (*RUNS, math.nan), "verify") for c in (0, 8)] * 2
    found = worst_outliers(context_of(linear(8), seen)[0])
    assert found.loss == 0


@pytest.mark.parametrize(("bad", "of_bad", "good", "of_good"), [(13, 71, 0, 71), (1, 5, 0, 5), (4, 9, 5, 8)])
def test_the_evidence_is_the_ratio_of_probabilities_of_what_was_counted(
    bad: int, of_bad: int, good: int, of_good: int
) -> None:
    """By numerical integration over the shares."""

    def likelihood(*parts: tuple[int, int]) -> float:
        far, near = (sum(part[k] for part in parts) for k in (0, 1))
        shares = (np.arange(20_000) + 0.5) / 20_000
        return float((shares**far * (1 - shares) ** near).mean())

    sides = (bad, of_bad - bad), (good, of_good - good)
    expected = math.log(likelihood(sides[0]) * likelihood(sides[1]) / likelihood(*sides))
    assert Outliers("boot", bad, of_bad, good, of_good, 1.0).log_evidence == pytest.approx(expected, abs=1e-3)


def test_what_not_reproduced_leaves_open_is_told() -> None:
    (text,) = missed(boots(SAME, SAME))
    assert text == "A loss that shows in fewer than 39% of boots may be missed by 6 boots of bad."
    assert beta.ppf(0.95, 1, 6) == pytest.approx(0.393, abs=0.001), "the upper limit of none of six"
    (gain,) = missed(boots(SAME, SAME, goal(find="fix")))
    assert gain.startswith("A gain that shows in fewer than 39% of boots")
    first, second = missed(boots(SAME, [*SAME, 150.0]))
    assert first == (
        "1 of 7 boots of bad and 0 of 6 of good lie far from the others, by +50.0%. Typical ones are "
        "compared, and do not differ; how often such boots come is not searched for."
    )
    assert second.endswith("by 7 boots of bad.")
    assert missed(boots([100.0] * 3, [100.0] * 3, goal(clock="instructions"))) == ()


def test_what_helps_against_runs_is_told() -> None:
    seen = [Seen(0, RUNS * 3, "verify"), Seen(8, (*RUNS * 3, 200.0), "verify")] * 2
    context = context_of(linear(8), seen)[0]
    text = in_words(context, worst_outliers(context))
    assert text.startswith("2 of 20 runs of bad and 0 of 18 of good lie far from the others, by +100.0%.")
    assert text.endswith("Where a run is the mean of more operations, each has its share of slow ones.")
