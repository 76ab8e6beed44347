"""Copies: boots with the same random numbers, which count once where runs differ by chance."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bisector.search.copied_boots import boots_repeat
from tests.support.searching import Seen, context_of, linear


def test_boots_repeat_where_each_repetition_reads_the_same() -> None:
    """Cold repetitions differ within a boot, and boots have different numbers of runs: neither denies it."""

    def repeat(*boots: Sequence[float]) -> bool:
        context, _ = context_of(linear(4), [Seen(2, values) for values in boots])
        return boots_repeat(context.state, context.measured.scale)

    assert repeat((124.0, 109.0, 100.0), (124.0,), (124.3, 109.0))
    assert not repeat((124.0, 109.0, 100.0), (124.0, 110.0))
    assert not repeat((124.0, 109.0), (124.0, 109.0), (125.0,))
    assert repeat((math.nan, 109.0), (124.0, 109.0))
