"""Residuals after fixed effects: sums of products without them, with the digits that are left."""

from __future__ import annotations

from bisector.model.dag import Floats


def project_out(
    info: Floats, covariance: Floats, hx: Floats, xy: Floats, hh: Floats, hy: Floats, square: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return (beta, gram, slope, residual) of a regression on fixed effects x, for G weightings W at once.

    info: (G, p, p) x'Wx plus the precision of the effects' prior; covariance: its inverse; hx: (G, C, p) and
    xy: (G, p) products of further columns h and of the data y with x; hh: (G, C, C), hy: (G, C) and square:
    (G,) those of h and y. beta: (G, p) the fixed effects; gram, slope, residual: hh, hy and square without
    what x explains of h and of y.

    Each is written as the sum at the fitted coefficients, which is its least one: what rounding changes in
    them counts only squared. By the shorter hh - hx info^-1 xh it counts as it is. Where no cell of an exact
    clock tells two proven culprits apart, info and its inverse have eleven digits in common: a square of .001
    was -140 then, log factors were wrong by one, and those of pairs infinite.
    """
    b = covariance @ hx.transpose(0, 2, 1)
    beta = (covariance @ xy[:, :, None])[:, :, 0]
    explained = hx @ b
    gram = hh - explained - explained.transpose(0, 2, 1) + b.transpose(0, 2, 1) @ info @ b
    missing = xy - (info @ beta[:, :, None])[:, :, 0]
    slope = hy - (hx @ beta[:, :, None] + b.transpose(0, 2, 1) @ missing[:, :, None])[:, :, 0]
    return beta, gram, slope, square - (beta * (xy + missing)).sum(axis=1)
