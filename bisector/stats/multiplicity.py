"""Many comparisons at once: which of them are more than chance among so many."""

from __future__ import annotations

from collections.abc import Sequence

from bisector.stats.comparison_result import Comparison


def beyond_chance(found: Sequence[Comparison], alpha: float) -> list[Comparison]:
    """Return the significant comparisons that stay so among all that were tested, in their order.

    Of k tests those with the s smallest p are kept, for the largest s with p_(s) <= alpha s / k (Benjamini
    and Hochberg 1995). Where nothing differs anything is kept with probability alpha at most (Simes 1986),
    for independent metrics and for such as move together (Sarkar 1998). A single test is kept at alpha.
    """
    p = sorted(one.p for one in found if one.p is not None)
    kept = max((s for s, value in enumerate(p, start=1) if value <= alpha * s / len(p)), default=0)
    return [one for one in found if kept and one.significant and one.p is not None and one.p <= p[kept - 1]]


def by_chance_alone(found: Sequence[Comparison], alpha: float) -> str:
    """Return what a reader of so many comparisons must know; '' where none is expected by chance."""
    tested = sum(one.p is not None for one in found)
    expected = round(alpha * tested)
    if not expected:
        return ""
    which = f"{expected} of them {'is' if expected == 1 else 'are'}"
    return (
        f"{tested} comparisons, each with an error of {alpha:.2g} by itself: where nothing differs, about "
        f"{which} shown to differ"
    )
