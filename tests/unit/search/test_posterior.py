"""Properties of the posterior, and small cases against enumeration."""

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from bisector.model.commit_graph import CommitGraph
from bisector.model.dag import CommitDag
from bisector.model.decisions import Purpose
from bisector.search.design_matrix import DesignMatrix, NoiseHypothesis, build_design
from bisector.search.measurement import RESOLUTION_PER_THRESHOLD, Readings
from bisector.search.metric.scale import Scale
from bisector.search.posterior import (
    CULPRIT_COUNT_LOG_PRIOR,
    Posterior,
    compute_posterior,
    fit_noise_hypotheses,
)
from bisector.stats.linear.dense_covariance import DenseCovariance
from bisector.stats.nested_covariance import NestedCovariance
from bisector.stats.testbed_noise import TestbedNoise
from tests.support.searching import linear

Points = Sequence[tuple[int, float]]
"""(commit, location of its boot)."""


def read(points: Points, sd: float = 0.02, threshold: float = 0.05) -> Readings:
    commits = np.array([c for c, _ in points])
    count = len(points)
    return Readings(
        scale=Scale(True, 1.0, threshold, 1.0),
        boot=tuple(f"b{i}" for i in range(count)),
        purpose=cast("tuple[Purpose, ...]", ("search",) * count),
        commit=commits,
        layout=np.zeros(count, dtype=np.int64),
        testbed=np.zeros(count, dtype=np.int64),
        testbeds=("t",),
        time=np.arange(count, dtype=float),
        location=np.array([y for _, y in points]),
        precision=np.full(count, 1 / sd**2),
        runs=np.ones(count, dtype=np.int64),
        boot_ratio=np.ones(count),
        boot_squares=np.full(count, np.inf),
        run_sd=sd,
        run_df=20.0,
        nu=30.0,
        noise=TestbedNoise.alike(1, 20.0),
        tails=None,
        resolution=RESOLUTION_PER_THRESHOLD * threshold,
    )


def design(dag: CommitDag, readings: Readings, **more: Any) -> DesignMatrix:
    arguments: dict[str, Any] = {
        "same": {},
        "marks": {},
        "proven": (),
        "effect": 0.1,
        "blocks": 1,
        "count_log_prior": CULPRIT_COUNT_LOG_PRIOR,
    } | more
    return build_design(dag, readings, **arguments)


NOISES = (
    NoiseHypothesis(0.0),
    NoiseHypothesis(0.02, 0.01),
    NoiseHypothesis(0.0, 0.0, 0.05),
    NoiseHypothesis(0.0, 0.0, 0.0, 0.05),
)
points = st.lists(st.tuples(st.integers(0, 12), st.floats(-0.3, 0.3)), min_size=1, max_size=14).map(
    lambda p: [(0, 0.0), (12, 0.1), *p]
)


@settings(max_examples=60, deadline=None)
@given(points)
def test_sums_to_one(given_points: Points) -> None:
    posterior = compute_posterior(design(CommitDag(linear(12)), read(given_points)), NOISES)
    assert posterior.none + posterior.single.sum() + posterior.pair.sum() == np.float64(1) or math.isclose(
        posterior.none + posterior.single.sum() + posterior.pair.sum(), 1, abs_tol=1e-9
    )
    assert math.isclose(posterior.weights.sum(), 1, abs_tol=1e-9)
    assert (posterior.marginal >= -1e-12).all()
    assert (posterior.marginal <= 1 + 1e-9).all()


@settings(max_examples=40, deadline=None)
@given(points, st.randoms(use_true_random=False))
def test_invariant_to_the_order_of_visits_and_the_names_of_commits(
    given_points: Points, random: Random
) -> None:
    dag = CommitDag(linear(12))
    shuffled = list(given_points)
    random.shuffle(shuffled)
    # a second line of history with the same shape behind other indices: a twig in front shifts every number
    twig = CommitGraph(
        tuple(f"{i:040x}" for i in range(14)),
        ((), (), *((i - 1,) for i in range(2, 14))),
        (False, False, *[True] * 12),
        1,
        13,
    )
    plain = NOISES[:3]
    one = compute_posterior(design(dag, read(given_points)), plain)
    two = compute_posterior(design(dag, read(shuffled)), plain)
    three = compute_posterior(design(CommitDag(twig), read([(c + 1, y) for c, y in given_points])), plain)

    def by_size(posterior: Posterior) -> list[float]:
        p = posterior.design
        return [
            float(posterior.marginal[k])
            for k in np.argsort(
                [min(np.flatnonzero(p.classes.label == k)) for k in range(len(posterior.marginal))]
            )
        ]

    assert np.allclose(by_size(one), by_size(two), atol=1e-8)
    assert np.allclose(by_size(one), by_size(three), atol=1e-8)


@pytest.mark.parametrize("level", [0.0, 4.6, 1e3])
def test_proven_culprits_that_no_cell_tells_apart(level: float) -> None:
    """Before anything was measured between two proven culprits, both columns are the same."""
    given_points = [(c, level + y) for c, y in [(0, 0.0), (12, 0.1), (0, 0.01), (12, 0.12), (9, 0.11)]]
    readings = read(given_points)
    both = compute_posterior(design(CommitDag(linear(12)), readings, proven=((3,), (5,))), NOISES)
    one = compute_posterior(design(CommitDag(linear(12)), readings, proven=((5,),)), NOISES)
    assert np.isfinite(both.fits.beta).all()
    assert both.marginal.sum() == pytest.approx(one.marginal.sum(), rel=1e-3)
    assert both.fits.beta[0, 1:].sum() == pytest.approx(one.fits.beta[0, 1], rel=1e-3)


@pytest.mark.parametrize(
    ("testbeds", "layouts", "blocks", "noise", "kind"),
    [
        (3, 1, 4, NoiseHypothesis(0.03, 0.02, 0.05, 0.07, 0.2), NestedCovariance),
        (
            3,
            2,
            4,
            NoiseHypothesis(0.03, 0.02, 0.05, 0.07, 0.2),
            NestedCovariance,
        ),  # 10 binaries of five commits
        (1, 3, 4, NoiseHypothesis(0.03, 0.02, 0.05), NestedCovariance),  # 30 cells of five commits
        (1, 1, 4, NoiseHypothesis(0.03, 0.02, 0.05, 0.07), DenseCovariance),  # a time for each cell
        (1, 3, 1, NoiseHypothesis(0.03, 0.02), np.ndarray),  # 15 cells of five commits, diagonal
    ],
    ids=["several testbeds", "several testbeds and binaries", "few groups", "dense", "diagonal"],
)
def test_the_fit_is_that_of_the_covariances_written_out(
    testbeds: int, layouts: int, blocks: int, noise: NoiseHypothesis, kind: type
) -> None:
    """Drift, background, binaries and testbeds, and boots that scatter more on one testbed."""
    random = np.random.default_rng(7)
    data = read(
        [(int(c), float(y)) for c, y in zip([0, 12, 6, 3, 9] * 6, random.normal(size=30), strict=True)]
    )
    testbed, names = np.arange(30) % testbeds, ("a", "b", "c")[:testbeds]
    uneven = replace(TestbedNoise.alike(testbeds, 20.0), boot=np.array([0.5, 1.0, 2.0])[:testbeds])
    ratio, layout = uneven.boot[testbed], np.arange(30) % layouts
    data = replace(data, layout=layout, testbed=testbed, testbeds=names, noise=uneven, boot_ratio=ratio)
    p = design(CommitDag(linear(12)), data, blocks=blocks, proven=((5,),))
    fits = compute_posterior(p, (noise,)).fits
    assert isinstance(fits.covariances, kind)
    weight = 1 / ((0.03 * uneven.boot[testbed]) ** 2 + 1 / data.precision)
    total = np.bincount(p.cell, weight)
    y = np.bincount(p.cell, weight * data.location) / total
    k = np.diag(1 / total + (RESOLUTION_PER_THRESHOLD * p.threshold) ** 2)
    k += noise.binary**2 * (p.binary[:, None] == p.binary) + noise.background**2 * p.shared_history
    k += noise.drift**2 * np.minimum(p.time[:, None], p.time)
    k += noise.testbed**2 * (p.testbed[:, None] == p.testbed)
    inverse = np.linalg.inv(k)
    info = p.fixed.T @ inverse @ p.fixed
    beta = np.linalg.solve(info, p.fixed.T @ inverse @ y)
    assert fits.beta[0] == pytest.approx(beta, rel=1e-4)
    cross = p.indicator @ inverse @ p.fixed
    gram = p.indicator @ inverse @ p.indicator.T - cross @ np.linalg.solve(info, cross.T)
    assert fits.gram[0] == pytest.approx(gram, rel=1e-4, abs=1e-3)
    assert fits.slope[0] == pytest.approx(p.indicator @ inverse @ (y - p.fixed @ beta), rel=1e-4, abs=1e-3)
    rows = random.normal(size=(2, len(k)))
    assert fits.weigh(rows, 0) == pytest.approx(rows @ inverse)
    scatter = (weight * (data.location - y[p.cell]) ** 2).sum() - np.log(weight).sum() + np.log(total).sum()
    rest = y - p.fixed @ beta
    evidence = -0.5 * (scatter + np.linalg.slogdet(k)[1] + rest @ inverse @ rest + np.linalg.slogdet(info)[1])
    assert fits.evidence[0] == pytest.approx(evidence, abs=1e-3)


def test_single_culprit_equals_enumeration() -> None:
    """Every class by hand: the marginal of y under one normal effect, a flat level and known noise."""
    given_points = [(0, 0.01), (12, 0.11), (6, 0.09), (3, 0.02), (6, 0.12), (9, 0.1)]
    p = design(CommitDag(linear(12)), read(given_points))
    f = fit_noise_hypotheses(p, (NoiseHypothesis(0.0),))
    y = f.y[0]
    diagonal = 1 / (np.bincount(p.cell) / 0.02**2) + (0.02 * 0.05) ** 2
    flat = 1e4

    def density(h: NDArray[np.float64]) -> float:
        k = np.diag(diagonal) + flat + 0.1**2 * np.outer(h, h)
        return float(multivariate_normal.logpdf(y, np.zeros(len(y)), k))

    none = density(np.zeros(len(y)))
    for c in range(len(p.prior)):
        h = p.indicator[c]
        by_hand = density(h) - none
        a, s = f.gram[0, c, c], f.slope[0, c]
        ours = -0.5 * math.log1p(0.01 * a) + 0.5 * s**2 / (100 + a)
        assert math.isclose(by_hand, ours, abs_tol=1e-3)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 11), st.integers(0, 10), st.floats(0.0, 0.045))
def test_a_good_reading_never_raises_the_mass_of_ancestors(commit: int, seed: int, reading: float) -> None:
    """Levels and noise known (many readings at the ends), one culprit: the mass of 'contains' falls."""
    dag = CommitDag(linear(12))
    random = np.random.default_rng(seed)
    fixed = [(0, 0.0)] * 400 + [(12, 0.1)] * 400
    start = [
        (int(c), float(0.1 * (c >= 7) + 0.02 * random.standard_normal())) for c in random.integers(1, 12, 3)
    ]
    only_one = (-math.inf, 0.0, -math.inf)

    def mass(data: Points) -> float:
        posterior = compute_posterior(
            design(dag, read(data), count_log_prior=only_one), (NoiseHypothesis(0.0),)
        )
        labels = posterior.design.classes.label
        share = posterior.marginal / np.maximum(posterior.design.classes.size, 1)
        return float(sum(share[labels[c]] for c in range(1, commit + 1)))

    anchored = [*fixed, *start]
    assert mass([*anchored, (commit, reading)]) <= mass(anchored) + 1e-6


def test_equal_binaries_exclude_what_lies_between() -> None:
    dag = CommitDag(linear(12))
    p = design(dag, read([(0, 0.0), (12, 0.1)]), same={5: 5, 8: 5})
    excluded = {int(c) for k in np.flatnonzero(p.prior == 0) for c in np.flatnonzero(p.classes.label == k)}
    assert excluded == {6, 7, 8}


def test_marks_bind() -> None:
    dag = CommitDag(linear(12))
    p = design(dag, read([(0, 0.0), (12, 0.1)]), marks={4: "good", 9: "bad"})
    left = {int(c) for k in np.flatnonzero(p.prior > 0) for c in np.flatnonzero(p.classes.label == k)}
    assert left == set(range(5, 10))


def test_two_culprits_are_told_from_one() -> None:
    dag = CommitDag(linear(12))
    levels = [0.0] * 4 + [0.1] * 5 + [0.2] * 4
    data = [(c, levels[c]) for c in (0, 2, 3, 4, 6, 8, 9, 12)] * 3
    posterior = compute_posterior(
        design(dag, read(data), effect=0.2), (NoiseHypothesis(0.0), NoiseHypothesis(0.02))
    )
    label = posterior.design.classes.label
    assert posterior.marginal[label[4]] > 0.95
    assert posterior.marginal[label[9]] > 0.95


def test_exact_data_do_not_divide_by_zero() -> None:
    dag = CommitDag(linear(12))
    data = read([(0, 0.0), (12, 0.1), (6, 0.1), (6, 0.1)], sd=1e-3)
    posterior = compute_posterior(design(dag, replace(data, run_sd=1e-3)), NOISES)
    assert np.isfinite(posterior.marginal).all()


def test_pairs_equal_enumeration() -> None:
    """No culprit, one, or an unordered pair: by hand, with the priors and the cut of small effects."""
    given_points = [(0, 0.01), (12, 0.2), (4, 0.09), (8, 0.1), (4, 0.08), (8, 0.12), (12, 0.19), (0, -0.01)]
    p = design(CommitDag(linear(12)), read(given_points, sd=0.05))
    posterior = compute_posterior(p, (NoiseHypothesis(0.0),))
    f = posterior.fits
    y, h, count = f.y[0], p.indicator, len(p.prior)
    diagonal = 1 / (np.bincount(p.cell) / 0.05**2) + (0.02 * 0.05) ** 2
    random = np.random.default_rng(3)

    def log_likelihood(classes: list[int]) -> float:
        """Integrate over effects of at least 0.7 thresholds, drawn from their prior."""
        effects = random.normal(0.0, 0.1, (400_000, len(classes)))
        effects = effects[(np.abs(effects) >= 0.7 * 0.05).all(axis=1)]
        residual = y - effects @ h[classes]
        precision = 1 / diagonal
        weighted = (residual * precision).sum(axis=1)
        square = (residual**2 * precision).sum(axis=1) - weighted**2 / precision.sum()
        return float(np.log(np.exp(-0.5 * square).mean()))

    by_hand: dict[tuple[int, ...], float] = {(): CULPRIT_COUNT_LOG_PRIOR[0] + log_likelihood([])}
    for i in range(count):
        by_hand[i,] = CULPRIT_COUNT_LOG_PRIOR[1] + math.log(p.prior[i]) + log_likelihood([i])
        for j in range(i + 1, count):
            both = math.log(2 * p.prior[i] * p.prior[j])
            by_hand[i, j] = CULPRIT_COUNT_LOG_PRIOR[2] + both + log_likelihood([i, j])
    total = np.logaddexp.reduce(list(by_hand.values()))
    pair = sum(math.exp(x - total) for classes, x in by_hand.items() if len(classes) == 2)
    single = sum(math.exp(x - total) for classes, x in by_hand.items() if len(classes) == 1)
    assert 0.2 < pair < 0.98  # otherwise the comparison would say little
    assert posterior.pair.sum() == pytest.approx(pair, abs=0.01)
    assert posterior.single.sum() == pytest.approx(single, abs=0.01)


def test_pairs_are_formed_among_the_classes_that_are_likeliest_by_themselves() -> None:
    """Of 12 classes the two with a step are the best pair, also where pairs are formed among four only."""
    levels = [0.0] * 4 + [0.1] * 5 + [0.2] * 4
    p = design(CommitDag(linear(12)), read([(c, levels[c]) for c in range(13)] * 3), effect=0.2)
    noises = (NoiseHypothesis(0.0), NoiseHypothesis(0.02))
    few, every = (fit_noise_hypotheses(p, noises, pairs) for pairs in (4, 40))
    label = p.classes.label
    for fits in (few, every):
        best = int(fits.pair[0].argmax())
        assert {int(fits.first[best]), int(fits.second[best])} == {int(label[4]), int(label[9])}
    assert len({*few.first.tolist(), *few.second.tolist()}) <= 4


def test_a_pair_that_cancels_within_one_class_is_as_probable_as_its_prior() -> None:
    """P(both of a pair are in class k) is its prior squared: equal ends must not seem surer than that."""
    dag = CommitDag(linear(4))
    posterior = compute_posterior(design(dag, read([(0, 0.0), (4, 0.0), (2, 0.0)])), (NoiseHypothesis(0.01),))
    p = posterior.design
    two, none = math.exp(p.count_log_prior[2]), math.exp(p.count_log_prior[0])
    hidden = sum(float(share) ** 2 for share in p.prior) * two / none
    every = np.ones(len(p.prior), dtype=bool)
    assert posterior.hidden_pair(every) == pytest.approx(hidden / (1 + hidden))
    assert posterior.hidden_pair(~every) == 0.0


def test_the_effect_of_a_class_is_that_of_all_hypotheses_with_a_culprit_in_it() -> None:
    """By regression for each: alone, and beside a second culprit; then the moments of the mixture."""
    given_points = [(0, 0.01), (12, 0.2), (4, 0.09), (8, 0.1), (4, 0.08), (8, 0.12), (12, 0.19), (0, -0.01)]
    p = design(CommitDag(linear(12)), read(given_points, sd=0.05))
    posterior = compute_posterior(p, (NoiseHypothesis(0.0),))
    f, count = posterior.fits, len(p.prior)
    precision = np.diag(1 / (1 / (np.bincount(p.cell) / 0.05**2) + (0.02 * 0.05) ** 2))
    level = precision.sum(axis=1)
    centred = precision - np.outer(level, level) / level.sum()  # a flat level is integrated out

    def regression(classes: list[int]) -> tuple[float, float]:
        """Return mean and variance of the first class's effect."""
        h = p.indicator[classes]
        covariance = np.linalg.inv(h @ centred @ h.T + np.eye(len(classes)) / 0.1**2)
        return float((covariance @ h @ centred @ f.y[0])[0]), float(covariance[0, 0])

    checked = 0
    for k in range(count):
        parts = [(float(posterior.joint[0, 1 + k]), *regression([k]))]
        for at, (i, j) in enumerate(zip(f.first.tolist(), f.second.tolist(), strict=True)):
            if k in (i, j):
                weight = float(posterior.joint[0, 1 + count + at])
                parts.append((weight, *regression([k, j if i == k else i])))
        weights, means, variances = (np.array(x) for x in zip(*parts, strict=True))
        if weights.sum() < 1e-9:
            continue
        weights /= weights.sum()
        mean = float(weights @ means)
        sd = math.sqrt(float(weights @ (variances + means**2)) - mean**2)
        assert posterior.effect(k) == pytest.approx((mean, sd), rel=1e-3)
        checked += len(parts) > 1
    assert checked >= 2


def test_commits_share_the_probability_of_their_class_by_weight() -> None:
    dag = CommitDag(linear(4, weights=dict.fromkeys((1, 2, 3, 4), 1e-3)))
    posterior = compute_posterior(design(dag, read([(0, 0.0), (4, 0.1)])), (NoiseHypothesis(0.0),))
    found = posterior.commit_probabilities(dag.weights)
    assert found[1:] == pytest.approx(posterior.marginal.sum() / 4)


def test_what_noise_may_be_is_weighed_by_its_hypotheses() -> None:
    p = design(CommitDag(linear(4)), read([(0, 0.0), (4, 0.1)]))
    noises = (NoiseHypothesis(0.0), NoiseHypothesis(0.02, 0.01), NoiseHypothesis(0.02, 0.03))
    posterior = replace(compute_posterior(p, noises), weights=np.array([0.5, 0.3, 0.2]))
    assert posterior.boot_spreads == [(0.0, 0.5), (0.02, 0.3), (0.02, 0.2)]
    assert posterior.noise_reaches("binary", 0.01) == pytest.approx(0.5)
    assert posterior.noise_reaches("binary", 0.011) == pytest.approx(0.2)
    assert posterior.noise_reaches("background", math.ulp(0.0)) == 0


def test_proven_culprits_that_no_cell_tells_apart_leave_exact_data_their_digits() -> None:
    """Squares of .001 were differences of sums of 1e8 with rounding of 20, and pairs had infinite factors."""
    levels = [0.1 * (c >= 3) - 0.17 * (c >= 4) + 0.02 * (c >= 12) for c in range(26)]
    boots = [(c, levels[c]) for c in (0, 25, 0, 25, 0, 9, 5, 18)]
    exact = design(CommitDag(linear(25)), read(boots, 1e-5, 0.02), proven=((3,), (4,)), effect=0.3)
    with np.errstate(all="raise", under="ignore"):
        fits = fit_noise_hypotheses(exact, (NoiseHypothesis(0.0), NoiseHypothesis(0.0, 0.0, 0.3)))
    # The class behind good holds both: only the prior of the proven effects, N(0, 20), says what each has.
    held = exact.classes.label[3]
    assert fits.gram[0, held, held] == pytest.approx(1 / (2 * 20.0**2), rel=0.1)
    assert (np.diagonal(fits.gram, axis1=1, axis2=2) > 0).all()
    assert np.isfinite(fits.pair).all()
