"""The scale of t residuals, and how heavy their tails are."""

from __future__ import annotations

import numpy as np
import pytest

from bisector.stats.student_t import fit_scale


def test_outliers_make_tails_heavy_and_hardly_change_the_scale() -> None:
    random = np.random.default_rng(1)
    z, weight = random.standard_normal(400), np.ones(400)
    clean, nu = fit_scale(z, weight, 1e-6)
    z[::20] += 10.0
    dirty, heavy = fit_scale(z, weight, 1e-6)
    assert heavy == 3.0 < nu
    assert clean == pytest.approx(0.9, rel=0.1)
    assert dirty == pytest.approx(clean, rel=0.25)


def test_the_scale_is_never_below_the_floor() -> None:
    assert fit_scale(np.zeros(50), np.ones(50), 0.5)[0] == 0.5
