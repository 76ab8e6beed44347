"""Comparisons are wrong as seldom as they say, looked at after every boot and however much boots scatter."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Purpose
from bisector.model.goal import Goal, Metric, Threshold
from bisector.model.records import Booted, Ran, Record
from bisector.model.state import fold
from bisector.search import confirmation, endpoints
from bisector.search.cache import PlannerCache
from bisector.search.context import SearchContext
from bisector.search.noise_priors import BOOT_SPREAD_PRIOR
from bisector.search.sequential_test import (
    BELOW_THRESHOLD_POINTS,
    BELOW_THRESHOLD_WEIGHTS,
    Evidence,
    Side,
    SpreadHypothesis,
    _difference,
    broad_effect_prior,
    compare_sides,
)

GRAPH = CommitGraph(("a" * 40, "b" * 40), ((), (0,)), (False, True), 0, 1)
GOAL = Goal(Metric("m", "s", "lower", Threshold(0.01)))
TRIALS, ALPHA = 100, 0.05
RUN_SD = 0.01
ALLOWED = 12
"""Of 100 trials at 5%: more come once in a thousand times."""
ALLOWED_BETWEEN = 7
"""Of 100 trials where both claims may end a comparison and boots scatter: STOPPED_ALPHA_SHARE is for these.
4 and 6 are missed, and 12 and 9 with all of alpha."""


def looks(
    random: np.random.Generator, *, boot_sd: float, runs: int, run_sd: float = 0.02, loss: float = 0.0
) -> Iterator[tuple[SearchContext, Evidence]]:
    """Yield the view after every fourth of forty boots of the two ends, over three layouts of each."""
    cache = PlannerCache(GRAPH, None)
    records: list[Record] = []
    for b in range(40):
        commit = (b + b // 2) % 2
        level = commit * loss + random.normal(0, boot_sd)
        records.append(Booted(f"b{b}", commit, "t", True, 5.0, float(b), layout=b // 2 % 3, purpose="verify"))
        for k in range(3 if b < 4 else runs):
            value = 100 * math.exp(level + random.normal(0, run_sd))
            records.append(Ran(f"b{b}", k, {"m": value}, 1.0, b + k / 10))
        if b >= 7 and b % 4 == 3:
            context = cache.context(fold(GRAPH, GOAL, records))
            found = endpoints.compare_ends(context, cache)
            assert found is not None
            yield context, found


@pytest.mark.parametrize(
    ("boot_sd", "runs"), [(0.0, 1), (0.04, 1), (0.12, 1), (0.2, 4)], ids=["none", "2x", "6x", "10x"]
)
def test_equal_ends_pass_no_more_often_than_alpha(boot_sd: float, runs: int) -> None:
    random = np.random.default_rng(17)
    passed = sum(
        any(
            found.log_e_change > math.log(1 / ALPHA) for _, found in looks(random, boot_sd=boot_sd, runs=runs)
        )
        for _ in range(TRIALS)
    )
    assert passed <= ALLOWED


def test_a_loss_of_the_threshold_is_denied_no_more_often_than_alpha() -> None:
    random = np.random.default_rng(5)
    denied = sum(
        any(
            endpoints.ends_differ(context, found) is False
            for context, found in looks(random, boot_sd=0.05, runs=1, run_sd=0.001, loss=0.01)
        )
        for _ in range(TRIALS)
    )
    assert denied <= ALLOWED


@pytest.mark.parametrize(("scatter", "expected"), [(False, 0.02), (True, 0.0)])
def test_where_binaries_scatter_the_chosen_pair_of_them_proves_nothing(
    monkeypatch: pytest.MonkeyPatch, scatter: bool, expected: float
) -> None:
    """The ordinary binaries of two commits differ by 4%, those of another layout do not."""
    monkeypatch.setattr(confirmation, "binaries_scatter", lambda posterior: scatter)
    random = np.random.default_rng(2)
    records: list[Record] = []
    trials: list[tuple[int, int, Purpose]] = [(c, 0, "verify") for c in (0, 1, 1, 0)]
    trials += [(c, layout, "certify") for layout in (0, 1) for c in (0, 1, 1, 0)]
    for b, (commit, layout, purpose) in enumerate(trials):
        records.append(Booted(f"b{b}", commit, "t", True, 5.0, float(b), layout=layout, purpose=purpose))
        for k in range(5):
            level = 0.04 * (commit and layout == 0) + random.normal(0, 0.001)
            records.append(Ran(f"b{b}", k, {"m": 100 * math.exp(level)}, 1.0, b + k / 10))
    cache = PlannerCache(GRAPH, None)
    context = cache.context(fold(GRAPH, GOAL, records))
    found = confirmation.compare_with_parent(context, cache, 0, 1, (), 0.04)
    assert found is not None
    assert found.estimate == pytest.approx(expected, abs=0.003)


def compared(
    before: list[float],
    after: list[float],
    *,
    run: float,
    boot: float = 0.0,
    spreads: Sequence[SpreadHypothesis] = (),
    boots_scatter: bool | None = None,
    outliers: int = 0,
) -> Evidence:
    """Return the comparison of boots whose levels are known to `run`, if boots scatter by `boot`, or so.

    outliers: so many last boots of the later side have a thousandth of the weight.
    """

    def side(levels: list[float], light: int = 0) -> Side:
        n = len(levels)
        zeros = np.zeros(n, dtype=np.int64)
        precision = np.full(n, run**-2)
        precision[n - light :] /= 1000
        return Side(np.array(levels), precision, zeros, zeros, np.ones(n))

    return compare_sides(
        side(before),
        side(after, outliers),
        spreads or [SpreadHypothesis(boot, 0.0, 1.0)],
        50.0,
        broad_effect_prior(0.01),
        threshold=0.01,
        resolution=2e-4,
        alpha=0.05,
        boots_scatter=boots_scatter,
    )


def test_where_boots_scatter_no_claim_exceeds_what_their_order_supports() -> None:
    """Two modes may look like levels that repeat: three boots a side come apart in one of twenty orders."""
    low, high = [0.0, 0.001, -0.001, 0.0], [0.1, 0.101, 0.099, 0.1]
    assert compared(low[:3], high[:3], boot=0.005, run=0.001).log_e_change < math.log(20)
    assert compared(low, high, boot=0.005, run=0.001).log_e_change < math.log(70)
    assert compared(low, high, boot=0.005, run=0.001).log_e_change > math.log(33)
    assert compared([*low[:3], 0.1], [*high[:3], 0.0], boot=0.005, run=0.001).log_e_change < 0
    assert compared(high, low, boot=0.005, run=0.001).log_e_change < 0


def test_a_boot_that_counts_as_an_outlier_does_not_hide_that_boots_scatter() -> None:
    low, high = [0.0, 0.001, -0.001, 0.0], [0.1, 0.101, 0.099, 0.0]
    assert compared(low, high, boot=0.005, run=0.001, outliers=1).log_e_change < math.log(20)


def test_where_runs_scatter_or_the_clock_is_exact_levels_are_evidence_by_themselves() -> None:
    low, high = [0.0, 0.001, -0.001], [0.1, 0.101, 0.099]
    assert compared(low, high, boot=0.001, run=0.005).log_e_change > math.log(1000)
    assert compared(low, high, boot=0.005, run=0.001, boots_scatter=False).log_e_change > math.log(1000)


def test_boots_that_look_alike_are_held_to_their_order_where_scatter_was_seen_elsewhere() -> None:
    low, high = [0.0, 0.0, 0.0], [0.1, 0.1, 0.1]
    assert compared(low, high, boot=0.0, run=0.001).log_e_change > math.log(1000)
    assert compared(low, high, boot=0.0, run=0.001, boots_scatter=True).log_e_change < math.log(20)


def test_what_is_held_against_the_threshold_is_below_it() -> None:
    """Else the odds would grow under effects above the threshold: no e-value any more."""
    assert BELOW_THRESHOLD_POINTS.max() < 1.0
    assert BELOW_THRESHOLD_POINTS.min() < -100.0
    assert BELOW_THRESHOLD_WEIGHTS.sum() == pytest.approx(1.0)
    assert BELOW_THRESHOLD_WEIGHTS.min() > 0.0


@pytest.mark.parametrize("effect", [0.012, 0.02, 0.0238, 0.1, 0.117, 0.9])
def test_an_effect_that_is_known_precisely_is_a_change_wherever_it_lies_in_the_prior(effect: float) -> None:
    """Between two points of a prior without widths it had no probability: then only wide hypotheses spoke."""
    spreads = [SpreadHypothesis(sd, 0.0, weight) for sd, weight in ((0.0, 0.9), (effect / 2, 0.1))]
    low = [0.0, 1e-4, -1e-4, 0.0]
    found = compared(low, [y + effect for y in low], spreads=spreads, run=1e-4)
    assert found.log_e_change > math.log(1000)


def test_one_boot_a_side_does_not_show_that_boots_scatter() -> None:
    """The prior says exactly 0.5 then, whatever the values are rounded to."""
    spreads = [SpreadHypothesis(part * RUN_SD, 0.0, prior) for part, prior in BOOT_SPREAD_PRIOR]
    for effect in np.linspace(0.001, 0.2, 40):
        found, known = (
            compared([0.0], [effect], spreads=spreads, run=RUN_SD / math.sqrt(3), boots_scatter=scatter)
            for scatter in (None, False)
        )
        assert found.log_e_change == known.log_e_change


@pytest.mark.parametrize("testbeds", [1, 2, 3])
def test_a_difference_is_that_of_generalised_least_squares(testbeds: int) -> None:
    """Beside restricted maximum likelihood with the whole covariance matrix of all boots."""
    random = np.random.default_rng(5)

    def side(binaries: int) -> Side:
        binary = np.repeat(np.arange(binaries), 2 * testbeds)
        testbed = np.tile(np.arange(testbeds), 2 * binaries)
        n, ratio = len(binary), np.linspace(1.0, 1.2, testbeds)[testbed]
        return Side(random.normal(0, 0.02, n), 10 ** random.uniform(3, 6, n), binary, testbed, ratio)

    before, after, resolution = side(2), side(3), 1e-3
    boot, binary, stretch = (
        np.array([0.0, 0.01, 0.03]),
        np.array([0.0, 0.02, 0.005]),
        np.array([1.0, 0.8, 1.3]),
    )
    d, v, log = _difference(before, after, boot, binary, stretch, resolution)
    both = {
        name: np.concatenate([getattr(before, name), getattr(after, name)])
        for name in ("location", "precision", "testbed", "boot_ratio")
    }
    unit = np.concatenate([before.binary, 2 + after.binary])
    fixed = np.column_stack([both["testbed"][:, None] == np.arange(testbeds), unit >= 2]).astype(float)
    same_unit, same_testbed = (np.equal.outer(x, x) for x in (unit, both["testbed"]))
    expected = []
    for b, u, f in zip(boot, binary, stretch, strict=True):
        covariance = np.diag((b * both["boot_ratio"]) ** 2 + f**2 / both["precision"])
        covariance += u**2 * same_unit + resolution**2 * (same_unit & same_testbed)
        weight = np.linalg.inv(covariance)
        info = fixed.T @ weight @ fixed
        effects = np.linalg.solve(info, fixed.T @ weight @ both["location"])
        left = both["location"] - fixed @ effects
        scatter = np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(info)[1] + left @ weight @ left
        expected.append((effects[-1], np.linalg.inv(info)[-1, -1], -scatter / 2))
    shown = np.column_stack([d, v, log])
    wanted = np.array(expected)
    assert shown[:, :2] == pytest.approx(wanted[:, :2], rel=1e-8)
    assert shown[:, 2] - shown[0, 2] == pytest.approx(wanted[:, 2] - wanted[0, 2], rel=1e-6)


def interval_at_the_stop(random: np.random.Generator, effect: float, boot_sd: float) -> Evidence:
    """Return the comparison at the first look that proves a change, or that it is below the threshold.

    It is looked at after every pair of boots from the third on; after forty it ends in any case.
    """
    found = None
    levels: list[list[float]] = [[], []]
    for pair in range(40):
        for side, level in zip(levels, (0.0, effect), strict=True):
            side.append(level + random.normal(0, math.hypot(boot_sd, RUN_SD)))
        if pair < 2:
            continue
        spreads = [SpreadHypothesis(part * RUN_SD, 0.0, prior) for part, prior in BOOT_SPREAD_PRIOR]
        found = compared(*levels, spreads=spreads, run=RUN_SD)
        if max(found.log_e_change, found.log_e_below) >= math.log(1 / ALPHA):
            break
    assert found is not None
    return found


@pytest.mark.parametrize("boot_sd", [0.0, 0.01], ids=["boots alike", "boots scatter"])
@pytest.mark.parametrize("effect", [-0.02, 0.0, 0.005, 0.01, 0.02, 0.04, 0.16])
def test_an_interval_holds_the_effect_at_a_stop_that_the_data_chose(effect: float, boot_sd: float) -> None:
    random = np.random.default_rng(23)
    found = [interval_at_the_stop(random, effect, boot_sd) for _ in range(TRIALS)]
    missed = sum(not e.low <= effect <= e.high for e in found)
    assert missed <= (ALLOWED_BETWEEN if boot_sd and effect in (0.005, 0.01) else ALLOWED)
    assert all(e.low < e.estimate < e.high for e in found)
