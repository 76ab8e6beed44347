"""Predicted levels: their means, their uncertainty, and which hypotheses they tell apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bisector.model.commit_graph import CommitGraph
from bisector.search import predictive
from bisector.search.cache import Proven
from bisector.search.design_matrix import NoiseHypothesis
from bisector.search.posterior import compute_posterior
from bisector.search.predictive import LevelPredictor, ratio_in_tails, squared_distances, tails_of_boots
from bisector.stats.student_t import BootTails
from tests.support.searching import Seen, context_of, graph_of, linear

GOOD, BAD = (100.0, 100.1, 99.9), (110.0, 110.1, 109.9)
EFFECT = float(np.log(1.1))


def predictor(
    graph: CommitGraph, levels: dict[int, bool], proven: Proven = (), testbed: int | None = 0
) -> LevelPredictor:
    ends = [Seen(c, BAD if c else GOOD, "verify") for c in (0, graph.bad) * 3]
    visits = [*ends, *(Seen(c, BAD if bad else GOOD) for c, bad in levels.items())]
    context, cache = context_of(graph, visits)
    return LevelPredictor(cache.posterior(context, proven, EFFECT), context.dag, proven, testbed)


def summary(found: LevelPredictor, commit: int, layout: int = 0) -> tuple[float, float]:
    """Return mean and standard deviation of a predicted level, relative to good's measured one."""
    p = found.levels([(commit, layout)])
    mean = float((p.weight * p.mean).sum())
    variance = float((p.weight * (p.variance + p.mean**2)).sum()) - mean**2
    return mean - np.log(100.0), float(np.sqrt(variance))


def test_below_the_culprit_reads_good_and_above_it_bad() -> None:
    found = predictor(linear(16), {8: False, 9: True})
    for commit in (0, 4, 8):
        assert summary(found, commit)[0] == pytest.approx(0.0, abs=0.01)
    for commit in (9, 12, 16):
        assert summary(found, commit)[0] == pytest.approx(EFFECT, abs=0.01)


def test_the_middle_of_a_class_is_uncertain_and_its_ends_are_not() -> None:
    found = predictor(linear(16), {})
    mean, sd = summary(found, 8)
    assert mean == pytest.approx(EFFECT / 2, abs=0.01)
    assert sd == pytest.approx(EFFECT / 2, abs=0.01)
    assert summary(found, 16)[1] < 0.01


def test_two_culprits_read_half_of_the_loss_between_them() -> None:
    half = (105.0, 105.1, 104.9)
    visits = [Seen(c, values) for c, values in ((0, GOOD), (8, half), (16, BAD)) for _ in range(4)]
    context, cache = context_of(linear(16), visits)
    found = LevelPredictor(cache.posterior(context, (), EFFECT), context.dag, (), 0)
    means = [summary(found, commit)[0] / EFFECT for commit in (4, 8, 12)]
    assert means == pytest.approx([0.25, 0.5, 0.75], abs=0.05)


def test_predictions_follow_the_unit_of_levels_below_zero() -> None:
    """Such levels are no logarithms: in small units an effect is a large number."""

    def mean(unit: float) -> float:
        values = {0: (-100.0, -100.1, -99.9), 16: (-90.0, -90.1, -89.9)}
        visits = [Seen(c, tuple(unit * y for y in of)) for c, of in values.items() for _ in range(3)]
        context, cache = context_of(linear(16), visits)
        p = LevelPredictor(cache.posterior(context, (), 10 * unit), context.dag, (), 0).levels([(4, 0)])
        return float((p.weight * p.mean).sum()) / unit

    assert mean(1.0) == pytest.approx(-97.5, abs=0.3)
    assert mean(1e6) == pytest.approx(-97.5, abs=0.3)


def test_weights_sum_to_one_and_few_hypotheses_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found = predictor(linear(256), {c: c >= 100 for c in range(10, 250, 10)})
    p = found.levels([(c, 0) for c in (5, 95, 105, 200)])
    assert p.weight.sum(axis=1) == pytest.approx(1.0)
    assert (p.variance > 0).all()
    assert sum(len(h.weight) for h in found.hypotheses) > 1
    monkeypatch.setattr(predictive, "MAX_HYPOTHESES", 1)
    again = LevelPredictor(found.posterior, found.dag, (), 0)
    assert sum(len(h.weight) for h in again.hypotheses) == 1


def test_a_proven_culprit_moves_the_prediction() -> None:
    found = predictor(linear(16), {8: False, 9: True}, proven=((9,),))
    assert summary(found, 12)[0] == pytest.approx(EFFECT, abs=0.02)
    assert summary(found, 4)[0] == pytest.approx(0.0, abs=0.02)


def test_shares_are_whole_for_measured_commits_and_parts_inside_a_class() -> None:
    found = predictor(linear(16), {8: False})
    older, newer = (found.posterior.design.classes.label[c] for c in (4, 12))
    assert found.shares(8)[[older, newer]].tolist() == [1.0, 0.0]
    assert found.shares(4)[[older, newer]].tolist() == [0.5, 0.0]
    assert found.shares(10)[[older, newer]].tolist() == [1.0, 0.25]


def test_a_branch_that_lacks_good_has_an_offset_until_it_is_measured() -> None:
    # 0 good, 1 an older fork point; 2, 3 branch from 1; 4 from good; 5 merges
    graph = CommitGraph(
        tuple(f"{i:040x}" for i in range(6)),
        ((), (), (1,), (2,), (0,), (4, 3)),
        (False, False, True, True, True, True),
        0,
        5,
    )
    unknown = predictor(graph, {})
    assert summary(unknown, 2)[1] > 0.9 * unknown.posterior.design.threshold
    assert summary(predictor(graph, {2: False}), 2)[1] < 0.5 * summary(unknown, 2)[1]


def test_a_testbed_that_has_not_measured_yet_is_less_certain() -> None:
    """Two testbeds read 30% apart: what a third would read is not known better than that."""
    visits = [
        Seen(c, tuple(y * (1 + 0.3 * t) for y in (BAD if c else GOOD)), "verify", testbed=f"t{t}")
        for c in (0, 16) * 3
        for t in (0, 1)
    ]
    context, cache = context_of(linear(16), visits)
    posterior = cache.posterior(context, (), EFFECT)
    known, new = (LevelPredictor(posterior, context.dag, (), testbed) for testbed in (0, None))
    assert summary(known, 16)[1] < 0.01
    assert summary(new, 16)[1] > 0.1


def test_effects_of_a_hypothesis_are_those_of_the_regression() -> None:
    levels = {0: 100.0, 16: 121.0, 6: 110.0, 10: 110.0}
    visits = [
        Seen(c, (y, y + 0.1, y - 0.1), "verify" if c in (0, 16) else "search")
        for c, y in levels.items()
        for _ in range(3)
    ]
    context, cache = context_of(linear(16), visits)
    found = LevelPredictor(cache.posterior(context, (), EFFECT), context.dag, (), 0)
    design, fits = found.posterior.design, found.posterior.fits
    pairs = 0
    for h in found.hypotheses:
        for j, (first, second) in enumerate(zip(h.first.tolist(), h.second.tolist(), strict=True)):
            classes = [k for k in (first, second) if k >= 0]
            gram, slope = fits.gram[h.noise][np.ix_(classes, classes)], fits.slope[h.noise][classes]
            covariance = np.linalg.inv(gram + np.eye(len(classes)) / design.effect**2)
            assert h.effect[j, : len(classes)] == pytest.approx(covariance @ slope)
            assert h.effect[j, len(classes) :].tolist() == [0.0] * (2 - len(classes))
            assert h.covariance[j, : len(classes)] == pytest.approx(np.diag(covariance))
            if len(classes) == 2:
                assert h.covariance[j, 2] == pytest.approx(covariance[0, 1])
                pairs += 1
    assert pairs >= 2


@pytest.mark.parametrize("noises", [1, 2, 3])
def test_what_tells_only_noises_apart_is_marked_where_there_are_several(noises: int) -> None:
    """Else the search would measure to learn about noise, which finds no culprit."""
    found = predictor(linear(16), {8: False})
    found.hypotheses = [found.hypotheses[0]] * noises
    assert (found.levels([(4, 0)]).culprit_id is None) is (noises == 1)


def test_a_level_that_drifts_is_predicted_for_now_from_what_was_measured_when() -> None:
    """Without a culprit: the best linear prediction, with a free level and a random walk in time."""
    drifts = {0: 0.0, 8: 3.0, 2: 2.0, 6: 5.0, 4: 4.0, 5: 7.0}
    visits = [Seen(c, (100.0 + x, 100.1 + x, 99.9 + x)) for c, x in drifts.items()]
    context, cache = context_of(linear(8), visits)
    none = (0.0, -np.inf, -np.inf)
    p = replace(cache.design(context, (), EFFECT, drifts=True), count_log_prior=none)
    noise = NoiseHypothesis(0.001, drift=0.05)
    posterior = compute_posterior(p, (noise,))
    found = LevelPredictor(posterior, context.dag, (), 0).levels([(8, 0)])
    assert found.weight.shape == (1, 1)
    r, time, y = p.readings, p.time, posterior.fits.y[0]
    assert len(y) == len(r.location), "each visit is a cell of its own"
    k = np.diag(0.001**2 + 1 / r.precision + r.resolution**2) + 0.05**2 * np.minimum(time[:, None], time)
    inverse = np.linalg.inv(k)
    level = inverse.sum(axis=0) @ y / inverse.sum()
    now = 0.05**2 * time
    left = 1 - now @ inverse.sum(axis=1)
    assert found.mean[0, 0] == pytest.approx(level + now @ inverse @ (y - level))
    assert found.variance[0, 0] == pytest.approx(
        0.05**2 - now @ inverse @ now + left**2 / inverse.sum(), rel=1e-3
    )


def test_a_distance_is_that_from_the_level_of_each_hypothesis() -> None:
    """Written out: each commit in turn is the culprit, its effect by least squares with a normal prior."""
    graph = linear(8)
    visits = [Seen(c, BAD if c else GOOD, "verify") for c in (0, 8) * 2]
    visits += [Seen(4, (105.0, 105.1, 104.9)), Seen(4, GOOD), Seen(6, BAD)]
    context, cache = context_of(graph, visits)
    design = cache.design(context, (), EFFECT, drifts=False)
    boot = 0.01
    posterior = compute_posterior(design, (NoiseHypothesis(boot),), pairs=0)
    r = context.measured
    weight = 1 / (boot**2 + 1 / r.precision)
    expected = np.zeros(len(r.commit))
    for k, probability in zip(range(-1, len(posterior.single)), posterior.joint[0], strict=True):
        columns = np.stack([np.ones(len(r.commit)), design.indicator[k][design.cell] * (k >= 0)], axis=1)
        info = columns.T @ (weight[:, None] * columns) + np.diag([0.0, EFFECT**-2])
        level = columns @ np.linalg.solve(info, columns.T @ (weight * r.location))
        expected += probability * (r.location - level) ** 2
    assert squared_distances(posterior) == pytest.approx(expected, rel=1e-3, abs=1e-7)
    assert expected[4] > 5 * expected[:4].max()  # the boot in the middle, whichever level it has


def test_a_distance_is_expected_over_pairs_by_the_likeliest_noise() -> None:
    visits = [Seen(c, BAD if c else GOOD, "verify") for c in (0, 16) * 2]
    visits += [Seen(8, (105.0, 105.1, 104.9)), Seen(4, GOOD), Seen(12, BAD)]
    context, cache = context_of(linear(16), visits)
    design = cache.design(context, (), EFFECT, drifts=False)
    quiet, loud = NoiseHypothesis(0.005), NoiseHypothesis(0.01)
    rows = [squared_distances(compute_posterior(design, (noise,))) for noise in (quiet, loud)]
    both = compute_posterior(design, (loud, quiet))
    assert 0.03 < both.weights[0] < 0.45
    assert squared_distances(both) == pytest.approx(rows[0])
    assert rows[0] != pytest.approx(rows[1], rel=0.2)
    # Two culprits explain the boot in the middle, one does not.
    alone = squared_distances(compute_posterior(design, (quiet,), pairs=0))
    assert rows[0][4] < 0.1 * alone[4]


def test_boots_that_are_alone_may_show_tails_too() -> None:
    """Few boots of any binary say nothing about tails; what fits no level of any commit does."""
    ends = [Seen(c, BAD if c else GOOD, "verify") for c in (0, 16) * 2]
    quiet = [Seen(c, tuple(y + 0.05 * c % 0.3 for y in GOOD)) for c in range(1, 11)]
    for last, tailed in ((100.2, False), (92.0, True)):
        context, cache = context_of(
            linear(16), [*ends, *quiet, Seen(3, (last, last + 0.1, last - 0.1), layout=1)]
        )
        assert context.measured.tails is None
        design = cache._plain_design(context, (), EFFECT, drifts=False)
        posterior = compute_posterior(design, (NoiseHypothesis(0.01),))
        tails = tails_of_boots(posterior)
        assert (tails is not None) == tailed
        if tails is not None:
            ratio = ratio_in_tails(posterior, tails)
            assert ratio[-1] > 4 and (ratio[:-1] < 2).all()


def test_what_the_boots_of_a_testbed_have_in_common_is_no_distance() -> None:
    """One testbed is half as fast, and has few boots."""
    visits = [Seen(c, BAD if c else GOOD, "verify") for c in (0, 16) * 3]
    slow = [Seen(c, tuple(2 * y for y in (BAD if c else GOOD)), testbed="slow") for c in (0, 16, 0)]
    context, cache = context_of(linear(16), [*visits, *slow])
    design = cache._plain_design(context, (), EFFECT, drifts=False)
    assert (
        squared_distances(compute_posterior(design, (NoiseHypothesis(0.01, testbed=1.0),))) < 0.02**2
    ).all()


def test_boots_of_one_binary_that_agree_do_not_lie_apart() -> None:
    """A commit between the ends whose level is that of neither: many small changes, or its binary."""
    tailed = [0.0, 0.1, -0.1, 0.2, -0.2, 0.15, -0.15, 0.05, 8.0]
    ends = [Seen(c, boot_at(level + x), "verify") for x in tailed for c, level in ((0, 100.0), (16, 110.0))]
    agreeing, lone = [Seen(8, boot_at(106.0)) for _ in range(3)], [Seen(4, boot_at(106.0))]
    context, cache = context_of(linear(16), [*ends, *agreeing, *lone])
    design = cache._plain_design(context, (), EFFECT, drifts=False)
    posterior = compute_posterior(design, (NoiseHypothesis(0.005),), pairs=0)
    tails = tails_of_boots(posterior)
    assert tails is not None and tails == context.measured.tails
    distances, ratio = squared_distances(posterior), ratio_in_tails(posterior, tails)
    assert (distances[18:] > 0.015**2).all()
    assert (ratio[18:21] < 1.1).all() and ratio[21] > 3


def boot_at(level: float) -> tuple[float, ...]:
    return level, level + 0.02, level - 0.02


def test_a_boot_of_a_testbed_that_scatters_more_does_so_in_tails_too() -> None:
    visits = [Seen(c, BAD if c else GOOD, "verify") for c in (0, 16) * 3]
    context, cache = context_of(linear(16), visits)
    design = cache._plain_design(context, (), EFFECT, drifts=False)
    posterior = compute_posterior(design, (NoiseHypothesis(0.01),))
    r = design.readings
    twice = replace(design, readings=replace(r, noise=replace(r.noise, boot=np.array([2.0]))))
    tails = BootTails(3.0, 0.01**2)
    assert ratio_in_tails(posterior, tails) == pytest.approx(np.ones(6))
    assert ratio_in_tails(replace(posterior, design=twice), tails) == pytest.approx(np.full(6, 2.0))


def test_a_part_of_a_proven_set_has_a_level_of_its_own() -> None:
    """2 to 4 are proven; 5 and 6 leave them after 2, 7 after 3. 5 was measured, and is as slow as bad."""
    parents = ((), (0,), (1,), (2,), (3,), (2,), (5,), (3,), (4, 6, 7))
    graph = graph_of(parents)
    found = predictor(graph, {1: False, 4: True, 5: True}, proven=((2, 3, 4),))
    for commit in (5, 6):
        mean, sd = summary(found, commit)
        assert mean == pytest.approx(EFFECT, abs=0.01)
        assert sd < 0.02
    assert summary(found, 7)[1] > EFFECT / 2  # nothing says what 3 has of it
    assert summary(found, 4) == pytest.approx((EFFECT, 0.0), abs=0.02)
    assert summary(found, 1) == pytest.approx((0.0, 0.0), abs=0.02)
