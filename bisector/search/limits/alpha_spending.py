"""How alpha is spent over the suspects of a search, in the order of their first fresh boots."""

from __future__ import annotations

import math

from bisector.search.context import SearchContext


def commits_with_fresh_boots(context: SearchContext) -> list[int]:
    """Return the commits that have boots for a certificate, in the order of their first one."""
    return context.booted("certify")


def alpha_share(context: SearchContext, after: int) -> float:
    """Return a suspect's share of alpha: 6 / (pi j)^2 of it, which sums to one.

    j is its place among the commits with fresh boots, the parents among them.
    """
    return _share(context, _place(context, after))


def alpha_spent(context: SearchContext, after: int) -> float:
    """Return a bound of the probability that this suspect or one that was tried before it passes by chance.

    What is reported is the first suspect that passes, so its error is not its own share: with each one that
    failed there was another chance of a false proof (Boole's inequality over the shares up to its own). The
    shares of all commits with fresh boots count, the parents among them, which makes the bound larger.
    """
    return sum(_share(context, j) for j in range(1, _place(context, after) + 1))


def _share(context: SearchContext, j: int) -> float:
    return context.alpha * 6 / (math.pi * j) ** 2


def _place(context: SearchContext, after: int) -> int:
    """Return the place of a commit, from 1, among those with fresh boots; the next one if it has none."""
    order = commits_with_fresh_boots(context)
    return order.index(after) + 1 if after in order else len(order) + 1
