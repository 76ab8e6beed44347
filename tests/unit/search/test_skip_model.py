"""Commits near broken ones: the chance that they are broken too, and how far the search steps away."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bisector.model.dag import CommitDag
from bisector.model.records import Booted, Built, Left, Ran, Record
from bisector.model.state import fold
from bisector.search import skip_model
from bisector.search.context import SearchContext
from tests.support.searching import drive, goal, linear, step


def seen(n: int, failed: Iterable[int], worked: Iterable[int], **more: Any) -> SearchContext:
    records: list[Record] = [Built(c, False, 9.0, failure="error") for c in failed]
    for c in worked:
        records += [Built(c, True, 9.0, f"k{c}"), Booted(f"b{c}", c, "t", True, 5.0, 0.0)]
        records += [Ran(f"b{c}", 0, {"real": 1.0}, 1.0, 0.0), Left(f"b{c}")]
    graph = linear(n, **more)
    return SearchContext(fold(graph, goal(), records), CommitDag(graph))


def chance(context: SearchContext) -> NDArray[np.float64]:
    return skip_model.estimate_breakage(context, context.dag.weights).failure_probability


def test_nothing_is_suspected_before_a_failure_nor_for_what_was_skipped_beforehand() -> None:
    context = seen(100, [], [0, 100], untestable={50: "not Linux"})
    assert not chance(context).any()


def test_the_chance_halves_at_the_geometric_mean_of_what_is_known() -> None:
    fails = chance(seen(100, [36], [0, 100]))
    assert fails[36 + 7] == pytest.approx(
        skip_model.SHARED_BREAKAGE_PROBABILITY / 2, abs=0.01
    )  # sqrt(65) = 8.06 commits of the stretch
    assert fails[36 - 5] == pytest.approx(
        skip_model.SHARED_BREAKAGE_PROBABILITY / 2, abs=0.01
    )  # sqrt(37) = 6.08
    assert fails[0] == fails[100] == 0


def test_the_log_of_the_distance_is_uniform_between_what_is_known() -> None:
    """One of 16 is broken, with eight on each side that may be: it begins or ends within nine."""
    context = seen(16, [8], [0, 16])
    reaches = [1 - np.log(d) / np.log(9) for d in range(2, 9)]
    shared = skip_model.SHARED_BREAKAGE_PROBABILITY
    fails = chance(context)
    assert fails[9:16] == pytest.approx([shared * p for p in reaches])
    assert fails[7:0:-1] == pytest.approx([shared * p for p in reaches])
    assert fails[8] == shared


def test_what_fails_brings_nothing_and_costs_nothing_where_the_culprit_is_broken_too() -> None:
    context = seen(16, [8], [0, 16])
    for weight in (np.ones(17), np.arange(17.0), np.eye(17)[8], np.eye(17)[9], np.zeros(17)):
        found = skip_model.estimate_breakage(context, weight)
        fails = found.failure_probability
        inside = float(weight @ fails) / max(float(weight.sum()), 1e-12)
        assert found.expected_yield == pytest.approx((1 - fails) / (1 - fails * inside))
    assert skip_model.estimate_breakage(context, np.eye(17)[8]).expected_yield[8] > 0.6


def test_a_second_failure_moves_the_next_try_out_by_a_factor() -> None:
    one = chance(seen(1000, [500], [0, 1000]))
    two = chance(seen(1000, [500, 540], [0, 1000]))
    assert one[600] < 0.3 < two[600]
    assert two[520] == skip_model.SHARED_BREAKAGE_PROBABILITY


def test_a_commit_that_was_measured_before_it_failed_is_broken() -> None:
    fails = chance(seen(100, [36], [0, 36, 100]))
    assert (fails == chance(seen(100, [36], [0, 100]))).all()


def test_a_commit_that_works_ends_the_stretch() -> None:
    fails = chance(seen(1000, [500], [0, 510, 1000]))
    assert not fails[510:].any()
    assert 0 < fails[509] < 0.1 < fails[400]


@given(st.integers(2, 200), st.data())
def test_it_is_a_probability_and_falls_with_the_distance(n: int, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(1, n - 1), unique=True, max_size=8))
    cut = data.draw(st.integers(0, len(places)))
    failed, worked = places[:cut], [0, n, *places[cut:]]
    fails = chance(seen(n, failed, worked))
    assert ((fails >= 0) & (fails < 1)).all()
    assert not fails[worked].any()
    for c in failed:
        up = [fails[i] for i in range(c + 1, n + 1) if not {*range(c + 1, i + 1)} & {*failed, *worked}]
        assert up == sorted(up, reverse=True)
    assert np.isfinite(fails).all()


@pytest.mark.parametrize("length", [1, 10, 100, 400])
def test_a_stretch_that_does_not_build_is_left_after_a_few_failures(length: int) -> None:
    """512 lies in the stretch, the culprit is 900: stepping one by one would try the whole stretch."""
    stretch = range(512 - length // 2, 512 - length // 2 + length)
    end, records, _ = drive(linear(1024), goal(), step(900), limit=200, unbuildable=stretch)
    assert [f.commits for f in end.findings] == [(900,)]
    assert sum(isinstance(r, Built) and not r.ok for r in records) <= 4
