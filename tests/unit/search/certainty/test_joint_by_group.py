"""Joint probabilities of groups of noise hypotheses: what is left out has no weight."""

from __future__ import annotations

import math
from collections import Counter
from itertools import chain

import numpy as np
import pytest

from bisector.search.certainty import joint_by_group as module
from bisector.search.certainty.joint_by_group import log_joint_bounds, log_joint_by_group
from bisector.search.design_matrix import DesignMatrix, NoiseHypothesis
from bisector.search.noise_screening import boot_and_binary_hypotheses, combine_with_other_noise
from bisector.search.posterior import fit_noise_hypotheses, log_joint
from tests.support.searching import Seen, context_of, linear

EFFECT = math.log(1.1)
TESTBEDS = {"one testbed": ("a",), "two testbeds": ("a", "b")}


def design(testbeds: tuple[str, ...], scatter: float, *, drifts: bool = False) -> DesignMatrix:
    """Return the design of twenty boots of three runs each; scatter: of boots, in those of runs."""
    random = np.random.default_rng(3)
    visits = []
    for i, commit in enumerate((0, 16, 8, 4, 6) * 4):
        level = (100 if commit < 6 else 110) + scatter * random.standard_normal()
        samples = tuple((level + random.standard_normal(3)).tolist())
        visits.append(Seen(commit, samples, testbed=testbeds[i % len(testbeds)]))
    context, cache = context_of(linear(16), visits)
    return cache.design(context, (), EFFECT, drifts=drifts)


def every(p: DesignMatrix, *, drifts: bool = False) -> tuple[NoiseHypothesis, ...]:
    return combine_with_other_noise(p, boot_and_binary_hypotheses(p), drifts=drifts)


def totals(p: DesignMatrix, noises: tuple[NoiseHypothesis, ...]) -> list[float]:
    return [float(np.logaddexp.reduce(joint.ravel())) for _, joint, _, _ in log_joint_by_group(p, noises, 16)]


@pytest.mark.parametrize("drifts", [False, True])
@pytest.mark.parametrize("scatter", [0.0, 1.0, 10.0])
@pytest.mark.parametrize("testbeds", TESTBEDS.values(), ids=TESTBEDS)
def test_no_hypothesis_is_above_its_bound(testbeds: tuple[str, ...], scatter: float, drifts: bool) -> None:
    p = design(testbeds, scatter, drifts=drifts)
    noises = every(p, drifts=drifts)
    sums = np.logaddexp.reduce(log_joint(p, fit_noise_hypotheses(p, noises)), axis=1)
    assert (sums <= log_joint_bounds(p, noises)).all()


@pytest.mark.parametrize("scatter", [0.0, 1.0, 10.0])
@pytest.mark.parametrize("testbeds", TESTBEDS.values(), ids=TESTBEDS)
def test_what_is_left_out_has_no_weight(
    testbeds: tuple[str, ...], scatter: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = design(testbeds, scatter)
    some = totals(p, every(p))
    monkeypatch.setattr(module, "MAX_LEFT_OUT_LOG_ODDS", math.inf)
    whole = totals(p, every(p))
    assert len(whole) == math.ceil(len(every(p)) / module.HYPOTHESES_PER_GROUP)
    assert np.logaddexp.reduce(some) == pytest.approx(np.logaddexp.reduce(whole), abs=1e-13)
    if scatter == 10:
        assert len(some) < len(whole)


@pytest.mark.parametrize("numbers", [1, 10**6])
def test_how_many_are_fitted_at_one_time_changes_no_digit(
    numbers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = design(("a",), 1.0)
    expected = sorted(totals(p, every(p)))
    monkeypatch.setattr(module, "MAX_NUMBERS_AT_ONCE", numbers)
    monkeypatch.setattr(module, "MAX_LEFT_OUT_LOG_ODDS", math.inf)
    found = sorted(totals(p, every(p)))
    assert found[-len(expected) :] == pytest.approx(expected, rel=1e-13)


def test_groups_hold_each_hypothesis_once() -> None:
    p = design(("a",), 1.0)
    noises = every(p)[:21]
    groups = list(log_joint_by_group(p, noises, 16))
    assert Counter(chain.from_iterable(group.noises for group in groups)) == Counter(noises)
    expected = dict(zip(noises, log_joint(p, fit_noise_hypotheses(p, noises))[:, 0], strict=True))
    for group in groups:
        assert group.log[:, 0] == pytest.approx([expected[noise] for noise in group.noises])
