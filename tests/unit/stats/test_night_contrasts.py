"""What a night is worth, from nights whose scatter is known, and the arithmetic of contrasts."""

from __future__ import annotations

import numpy as np
import pytest

from bisector.model.dag import Floats
from bisector.stats.night_contrasts import (
    MAX_AFTER,
    MAX_BEFORE,
    MIN_BEFORE,
    Track,
    compare_last_nights,
    follow_nights,
)


def autocorrelated(count: int, r: float, seed: int) -> Floats:
    z = np.random.default_rng(seed).standard_normal(count)
    for i in range(1, count):
        z[i] = r * z[i - 1] + np.sqrt(1 - r * r) * z[i]
    return z


def follow(levels: Floats, begins: tuple[int, ...] = ()) -> Track:
    return follow_nights([(float(x),) for x in levels], begins)


@pytest.mark.parametrize("r", [0.0, 0.5])
def test_scatter_and_correlation_are_learnt(r: float) -> None:
    last = [follow(autocorrelated(200, r, seed)) for seed in range(30)]
    assert np.mean([t.sd[-1] for t in last]) == pytest.approx(1.0, abs=0.15)
    assert np.mean([t.correlation[-1] for t in last]) == pytest.approx(max(r, 0.05), abs=0.12)


@pytest.mark.parametrize("r", [0.0, 0.5])
def test_a_contrast_of_a_steady_series_has_the_deviation_that_it_claims(r: float) -> None:
    contrasts = [compare_last_nights(follow(autocorrelated(120, r, seed))) for seed in range(150)]
    for m in (1, 5, MAX_AFTER):
        ratio = np.array([c.effect[-1, m - 1] / c.sd[-1, m - 1] for c in contrasts])
        assert 0.75 < float(np.sqrt(np.mean(ratio**2))) < 1.35


def test_the_baseline_is_a_median_that_begins_anew_with_a_segment() -> None:
    track = follow(np.arange(100.0), (60,))
    assert track.baseline[59] == np.median(np.arange(60 - MAX_BEFORE, 60))
    assert track.baseline[60] == 60.0
    assert track.baseline[64] == 62.0
    assert track.nights[64] == MIN_BEFORE


def test_a_contrast_never_spans_the_begin_of_a_segment() -> None:
    known = ~np.isnan(compare_last_nights(follow(autocorrelated(100, 0.0, 1), (60,))).score)
    assert known[59].all()
    assert not known[60 : 60 + MIN_BEFORE].any()
    for n in range(60 + MIN_BEFORE, 80):
        assert np.flatnonzero(known[n]).tolist() == list(range(n - 60 - MIN_BEFORE + 1))


def test_the_level_of_a_night_is_hardly_moved_by_one_boot() -> None:
    groups = [(0.0, 1.0, 2.0, 3.0), (0.0, 1.0, 2.0, 1e9), (), (5.0,)]
    level = follow_nights(groups, ()).level
    assert level[0] == 1.5
    assert abs(level[1] - level[0]) <= 1.0
    assert np.isnan(level[2])
    assert level[3] == 5.0


def test_a_level_by_few_boots_is_as_uncertain_as_their_scatter_says() -> None:
    """Nights of three boots that scatter by 3, of one level each: it has the error of their mean."""
    boots = tuple(100.0 + 3.0 * x for x in (-1.0, 0.0, 1.0))
    with np.errstate(all="ignore"):
        track = follow_nights([boots] * 30, ())
    assert track.sd[-1] == 0.0
    assert track.recent_sd[-1] == pytest.approx(3.0 / np.sqrt(3.0))
