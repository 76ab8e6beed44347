"""What fixed effects leave: the residuals written out, and digits where two columns hardly differ."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bisector.stats.linear.projection import project_out


def sums(x: Any, h: Any, y: Any, weight: Any, prior: Any) -> tuple[Any, ...]:
    """Return what `project_out` takes, for one weighting. x: (T, p); h: (C, T); y, weight: (T,)."""
    info = (x.T * weight) @ x + np.diag(prior)
    of = ((h * weight) @ x, (x.T * weight) @ y, (h * weight) @ h.T, (h * weight) @ y, (y * weight) @ y)
    return tuple(np.asarray(a)[None] for a in (info, np.linalg.inv(info), *of))


def test_it_is_the_regression_written_out() -> None:
    random = np.random.default_rng(1)
    x, h, y = random.normal(size=(9, 3)), random.normal(size=(4, 9)), random.normal(size=9)
    weight, prior = random.uniform(1, 2, 9), np.array([0.1, 0.2, 0.3])
    beta, gram, slope, residual = project_out(*sums(x, h, y, weight, prior))
    # A prior is one more observation of each effect, of zero.
    rows = np.concatenate([np.sqrt(weight)[:, None] * x, np.diag(np.sqrt(prior))])
    wanted = np.concatenate([np.sqrt(weight) * np.vstack([h, y]), np.zeros((5, 3))], axis=1)
    left = wanted.T - rows @ np.linalg.lstsq(rows, wanted.T, rcond=None)[0]
    every = left.T @ left
    assert gram[0] == pytest.approx(every[:4, :4])
    assert slope[0] == pytest.approx(every[:4, 4])
    assert residual[0] == pytest.approx(every[4, 4])
    assert beta[0] == pytest.approx(np.linalg.lstsq(rows, wanted[4], rcond=None)[0])


def test_two_columns_that_only_their_prior_tells_apart_leave_their_digits() -> None:
    """Each of two equal columns has half of an effect, known by its prior alone: 1 / (2 * 20^2) is left."""
    step = np.array([0.0, 0.0, 0.0, 1.0, 1.0])
    x, h, y = np.stack([np.ones(5), step, step], axis=1), step[None], 0.03 * step
    weight, prior = np.full(5, 2.5e7), np.array([2e-13, 1 / 400, 1 / 400])
    _, gram, slope, residual = project_out(*sums(x, h, y, weight, prior))
    shorter = (hh := sums(x, h, y, weight, prior))[4] - hh[2] @ hh[1] @ hh[2].transpose(0, 2, 1)
    left = Fraction(1, 800)
    assert gram[0, 0, 0] == pytest.approx(float(left), rel=0.1)
    assert slope[0, 0] == pytest.approx(float(left) * 0.03, rel=0.1)
    assert residual[0] == pytest.approx(float(left) * 0.03**2, rel=0.1)
    assert abs(shorter[0, 0, 0] - float(left)) > float(left), "the shorter form has lost them"
