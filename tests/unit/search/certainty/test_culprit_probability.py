"""The probability that is stated of a commit: all noise hypotheses count, and all measurements."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from bisector.model.decisions import Purpose
from bisector.search.cache import PlannerCache, Proven
from bisector.search.certainty import culprit_probability as culprit_module
from bisector.search.certainty import joint_by_group as module
from bisector.search.certainty.culprit_probability import (
    MAX_LEFT_OUT_WEIGHT,
    culprit_probability,
    passing_probability,
    proof_probability,
)
from bisector.search.certainty.joint_by_group import JointOfGroup, log_joint_by_group
from bisector.search.confirmation import Proof
from bisector.search.context import SearchContext
from bisector.search.design_matrix import DesignMatrix, NoiseHypothesis
from bisector.search.noise_screening import boot_and_binary_hypotheses, combine_with_other_noise
from bisector.search.posterior import compute_posterior
from bisector.search.sequential_test import Evidence
from tests.support.searching import Seen, context_of, linear, make_evidence

EFFECT = math.log(1.1)


def boots(*levels: tuple[int, float], purpose: Purpose = "search") -> list[Seen]:
    """Return a boot for each (commit, level), of three runs that scatter by 1."""
    random = np.random.default_rng(3)
    return [Seen(c, tuple((level + random.standard_normal(3)).tolist()), purpose) for c, level in levels]


STEP = boots((0, 100), (16, 110), (8, 110), (4, 100), (6, 110), (5, 100), (0, 100), (16, 110))
"""Boots of a range whose culprit is 6, next to its parent 5."""


def probability(visits: list[Seen], *commits: int, proven: Proven = ()) -> float:
    context, cache = context_of(linear(16), visits)
    return culprit_probability(context, cache, commits, proven, EFFECT)


def in_one_go(context: SearchContext, cache: PlannerCache, commit: int) -> float:
    """Return the marginal probability with all hypotheses fitted at once."""
    p = cache.design(context, (), EFFECT, drifts=False)
    every = combine_with_other_noise(p, boot_and_binary_hypotheses(p), drifts=False)
    posterior = compute_posterior(p, every)
    return float(posterior.commit_probabilities(context.dag.weights)[commit])


@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_it_is_the_marginal_over_all_hypotheses_however_many_are_fitted_at_once(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, cache = context_of(linear(16), STEP)
    monkeypatch.setattr(module, "HYPOTHESES_PER_GROUP", at_once)
    found = culprit_probability(context, cache, (6,), (), EFFECT)
    assert found == pytest.approx(in_one_go(context, cache, 6), rel=1e-6)
    assert 0.9 < found < 0.9999


@pytest.mark.parametrize("some", [STEP[:-1], [*STEP, *boots((5, 108), (6, 102))]], ids=["clear", "doubtful"])
def test_in_passing_it_is_nearly_the_same_by_a_part_of_the_hypotheses(
    some: list[Seen], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []

    def counted(p: DesignMatrix, noises: tuple[NoiseHypothesis, ...], pairs: int) -> Iterator[JointOfGroup]:
        counts.append(len(noises))
        return log_joint_by_group(p, noises, pairs)

    monkeypatch.setattr(culprit_module, "log_joint_by_group", counted)
    context, cache = context_of(linear(16), some)
    whole = culprit_probability(context, cache, (6,), (), EFFECT)
    given = passing_probability(context, cache, (6,), (), EFFECT)
    assert given == pytest.approx(whole, abs=MAX_LEFT_OUT_WEIGHT)
    every, judged, weighty = counts
    assert min(every, judged) > 2 * weighty
    # What is left out has a weight: more of it, and the answer moves.
    monkeypatch.setattr(culprit_module, "MAX_LEFT_OUT_WEIGHT", 0.5)
    another, fresh = context_of(linear(16), some)
    passing_probability(another, fresh, (6,), (), EFFECT)
    assert counts[-1] < weighty / 2


def test_what_has_a_weight_is_judged_with_the_tails_that_boots_have_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fourteenth boot lies apart: boots had no tails at the checkpoint before the last one."""
    later = boots((5, 102), (6, 108), (4, 98), (0, 102), (16, 112), (4, 120), (4, 100))
    context, cache = context_of(linear(16), [*STEP, *later])
    ratios: dict[int, float] = {}
    every = culprit_module._every_noise

    def seen(p: DesignMatrix, drifts: bool) -> tuple[NoiseHypothesis, ...]:
        ratios[len(p.readings.boot)] = float(p.readings.boot_ratio.max())
        return every(p, drifts)

    monkeypatch.setattr(culprit_module, "_every_noise", seen)
    passing_probability(context, cache, (6,), (), EFFECT)
    culprit_probability(context, cache, (6,), (), EFFECT)
    assert ratios[14] > 2 and ratios[15] > 2
    part = cache.until_checkpoint(context)
    earlier = cache.design(part, (), EFFECT, drifts=False)
    assert earlier.readings.boot_ratio.max() == 1.0


def test_which_hypotheses_have_a_weight_is_judged_at_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that is resumed in between says what one says that ran through."""
    judged = []
    every = culprit_module._every_noise

    def seen(p: DesignMatrix, drifts: bool) -> tuple[NoiseHypothesis, ...]:
        judged.append(len(p.readings.location))
        return every(p, drifts)

    monkeypatch.setattr(culprit_module, "_every_noise", seen)
    visits = boots(*[(5, 100), (6, 110)] * 10)

    def stated(count: int, cache: PlannerCache | None = None) -> tuple[float, PlannerCache]:
        context, fresh = context_of(linear(16), visits[:count])
        cache = cache or fresh
        return passing_probability(cache.context(context.state), cache, (6,), (), EFFECT), cache

    _, cache = stated(15)
    again, _ = stated(16, cache)
    assert judged == [14]
    assert stated(16)[0] == again
    assert judged == [14, 14]
    stated(19, cache)
    assert judged == [14, 14, 18]


def test_it_is_less_certain_than_the_few_hypotheses_that_choose_trials() -> None:
    context, cache = context_of(linear(16), STEP)
    few = cache.posterior(context, (), EFFECT).commit_probabilities(context.dag.weights)[6]
    assert 1 - culprit_probability(context, cache, (6,), (), EFFECT) > 10 * (1 - few)


def test_a_set_holds_what_its_commits_hold_together() -> None:
    visits = boots((0, 100), (16, 110), (8, 110), (4, 100), (0, 100), (16, 110))
    each = [probability(visits, c) for c in (5, 6, 7, 8)]
    assert each == pytest.approx([each[0]] * 4)
    assert probability(visits, 5, 6) == pytest.approx(2 * each[0], rel=0.02)
    assert probability(visits, 5, 6, 7, 8) < probability(visits, *range(1, 17)) <= 1
    assert probability(visits) == 0


def test_fresh_boots_that_show_no_step_refute_a_suspect() -> None:
    before = probability(STEP, 6)
    shown = boots(*[(5, 100), (6, 110)] * 3, purpose="certify")
    refuted = boots(*[(5, 110), (6, 110)] * 3, purpose="certify")
    assert probability([*STEP, *shown], 6) > max(0.98, before)
    assert probability([*STEP, *refuted], 6) < 0.5


def test_boots_that_scatter_make_it_fall() -> None:
    """The same levels with boots of one commit half of the effect apart."""
    fresh = [(5, 100), (6, 110)] * 3
    apart = [(c, level + (3 if k % 4 < 2 else -3)) for k, (c, level) in enumerate(fresh)]
    clear, doubtful = (boots(*levels, purpose="certify") for levels in (fresh, apart))
    assert probability([*STEP, *clear], 6) > probability([*STEP, *doubtful], 6) + 0.005


def test_what_another_proven_change_explains_is_no_evidence_against_it() -> None:
    visits = [*STEP, *boots((12, 110), (13, 121), (12, 110), (13, 121), (16, 121), (10, 110))]
    proofs = [Proof((c,), c, (c - 1,), _evidence(EFFECT), 0.03) for c in (6, 13)]
    context, cache = context_of(linear(16), visits)
    ends = _evidence(2 * EFFECT)
    given = [proof_probability(context, cache, proofs, proof, ends) for proof in proofs]
    assert given == [
        culprit_probability(context, cache, (6,), ((13,),), EFFECT),
        culprit_probability(context, cache, (13,), ((6,),), EFFECT),
    ]


def _evidence(estimate: float) -> Evidence:
    return make_evidence(9.0, -9.0, estimate - 0.02, estimate, estimate + 0.02, 0.01, 1.0)
