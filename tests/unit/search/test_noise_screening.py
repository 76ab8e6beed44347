"""Which noise hypotheses are kept: those that the data need, and few."""

from __future__ import annotations

import numpy as np
import pytest

from bisector.search.design_matrix import NoiseHypothesis
from bisector.search.noise_priors import BACKGROUND_PRIOR, DRIFT_PRIOR, binary_spreads, boot_spreads
from bisector.search.noise_priors import testbed_spreads as grids_of_testbeds
from bisector.search.noise_screening import MAX_EXTRA_BACKGROUNDS, MAX_NOISE_HYPOTHESES, by_drift
from tests.support.searching import Seen, context_of, linear


def kept(visits: list[Seen], effect: float = 0.1) -> tuple[NoiseHypothesis, ...]:
    context, cache = context_of(linear(16), visits)
    return cache.posterior(context, (), effect).fits.noises


def visits(boot_sd: float, *, count: int = 12, layouts: int = 1, testbeds: int = 1) -> list[Seen]:
    random = np.random.default_rng(4)
    found = []
    for b in range(count):
        commit = (0, 16)[(b + b // 2) % 2]
        level = 100.0 + 10.0 * (commit > 0) + random.normal(0, boot_sd)
        runs = tuple(level + random.normal(0, 0.2, 4))
        found.append(Seen(commit, runs, "verify", b % layouts, f"t{b % testbeds}"))
    return found


def test_few_are_kept_the_most_probable_first() -> None:
    found = kept(visits(0.5))
    assert 1 <= len(found) <= MAX_NOISE_HYPOTHESES + MAX_EXTRA_BACKGROUNDS
    assert len(set(found)) == len(found)


def test_boots_that_scatter_need_a_boot_spread_and_quiet_ones_none() -> None:
    assert min(n.boot for n in kept(visits(3.0))) > 0.01
    assert any(n.boot == 0.0 for n in kept(visits(0.0)))


def test_testbeds_that_differ_need_a_testbed_spread() -> None:
    random = np.random.default_rng(5)
    found = [
        Seen(
            c,
            tuple(100.0 * (1 + 0.1 * (c > 0)) * (1 + 0.3 * t) + random.normal(0, 0.2, 4)),
            "verify",
            0,
            f"t{t}",
        )
        for c in (0, 16) * 3
        for t in (0, 1)
    ]
    assert min(n.testbed for n in kept(found)) > 0.05
    assert all(n.testbed == 0.0 for n in kept(visits(0.5)))


def test_each_hypothesis_has_the_design_that_it_needs() -> None:
    context, cache = context_of(linear(16), visits(0.5))
    p, drifting = (cache.design(context, (), 0.1, drifts=drifts) for drifts in (False, True))
    still, moving = NoiseHypothesis(0.1), NoiseHypothesis(0.1, drift=0.2)
    assert by_drift(p, drifting, [moving, still]) == [(p, (still,)), (drifting, (moving,))]
    assert by_drift(p, drifting, [moving]) == [(drifting, (moving,))]
    assert by_drift(p, drifting, [still]) == by_drift(p, None, [still]) == [(p, (still,))]


def test_a_background_is_kept_even_where_two_culprits_explain_everything() -> None:
    levels = {0: 100.0, 16: 110.0, 4: 100.0, 5: 120.0, 11: 120.0, 12: 110.0}
    exact = [Seen(c, (y,) * 3, "verify" if c in (0, 16) else "search") for c, y in levels.items()]
    assert any(n.background or n.binary for n in kept(exact))


@pytest.mark.parametrize("effect", [0.02, 0.1, 0.5])
def test_priors_of_the_kept_hypotheses_are_those_of_the_grids(effect: float) -> None:
    assert all(np.isfinite(n.log_prior) and n.log_prior < 0 for n in kept(visits(0.5), effect))


def test_the_prior_of_a_kept_hypothesis_is_the_product_of_its_grids() -> None:
    """A prior that is too small would hide the hypothesis that is true, and give too much confidence."""
    effect = 0.1
    context, cache = context_of(linear(16), visits(0.5, count=12, layouts=2))
    screened = cache.until_checkpoint(context).measured
    boots = dict(boot_spreads(screened))
    binaries = dict(binary_spreads(screened, effect))
    background = {part * effect: prior for part, prior in BACKGROUND_PRIOR}
    drift = {part * effect: prior for part, prior in DRIFT_PRIOR}
    found = cache.posterior(context, (), effect).fits.noises
    assert len(found) > 2
    for n in found:
        first = np.log(boots[n.boot] * binaries[n.binary])
        second = first + np.log(background[n.background] * drift[n.drift])
        assert n.log_prior == pytest.approx(second) or n.log_prior == pytest.approx(first), n
    assert any(n.binary == 0.0 and n.log_prior < -0.7 for n in found)


def test_a_spread_of_testbeds_is_considered_from_none_to_what_was_measured() -> None:
    """Levels that differ by 30% between two testbeds, whose ends differ by 10% on each."""
    found = [
        Seen(
            c,
            tuple(100.0 * (1 + 0.1 * (c > 0)) * (1 + 0.3 * t) + x for x in (0.1, 0.0, -0.1)),
            "verify",
            0,
            f"t{t}",
        )
        for c in (0, 16) * 3
        for t in (0, 1)
    ]
    context, cache = context_of(linear(16), found)
    posterior = cache.posterior(context, (), 0.1)
    widest = grids_of_testbeds(context.measured, 0.1)[-1][0]
    best = posterior.fits.noises[posterior.best]
    assert best.testbed > 0
    assert widest > 0.2
    assert any(n.testbed == pytest.approx(widest) for n in posterior.fits.noises)
    assert any(n.testbed == pytest.approx(0.7 * 0.1) for n in posterior.fits.noises)
    assert best.boot == 0.0  # what testbeds differ by is not held against the boots
