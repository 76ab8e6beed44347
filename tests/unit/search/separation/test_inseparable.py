"""What cannot be told apart, what a suspect is compared with, and which commits split a set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bisector.model.commit_graph import CommitGraph
from bisector.search.context import SearchContext
from bisector.search.separation.inseparable import (
    can_be_split,
    commit_measured_for,
    commits_beside,
    commits_to_split,
    comparison_parents,
    inseparable_commits,
    nearest_testable_parents,
)
from tests.support.searching import Seen, context_of, graph_of, linear

BROKEN = dict.fromkeys((1, 2, 3, 4), "skipped")


def forked(untestable: dict[int, str] = BROKEN, visits: Sequence[Seen] = ()) -> SearchContext:
    """Return a line 0..5 whose 1 to 4 cannot be tested; 6 leaves it after 2, 7 after 3, 9 merges all.

    8 stands on 7.
    """
    parents = ((), (0,), (1,), (2,), (3,), (4,), (2,), (3,), (7,), (5, 6, 8))
    graph = graph_of(parents, untestable=untestable)
    return context_of(graph, visits)[0]


def test_untestable_parents_are_replaced_by_theirs() -> None:
    context, _ = context_of(linear(6, untestable={3: "skipped", 2: "skipped"}))
    assert nearest_testable_parents(context, (4,)) == (1,)
    assert nearest_testable_parents(context, (3, 4)) == (1,)
    assert nearest_testable_parents(context, (4,), counted=(2,)) == (2,)
    assert comparison_parents(context, (4,), 4, counted=(2,)) == (2,)


def test_a_history_of_forks_that_cannot_be_tested_is_walked_once() -> None:
    """Sixty forks, one below the other, have 2^60 ways down to the commit that can be tested."""
    parents = [(), (0,)]
    for _ in range(60):  # two commits on the last merge, or on the first commit, and their merge
        last = len(parents) - 1
        parents += [(last,), (last,), (last + 1, last + 2)]
    graph = replace(
        linear(len(parents) - 1), parents=tuple(parents), untestable=dict.fromkeys(range(2, 181), "skipped")
    )
    context, _ = context_of(graph)
    assert nearest_testable_parents(context, (181,)) == (1,)
    assert inseparable_commits(context, 181) == tuple(range(2, 182))


def test_a_parent_on_an_older_branch_is_left_out_where_another_has_the_base_of_the_suspect() -> None:
    # 0 good, 1 an older fork point; 2 branches from 1 and lacks good, 3 from good; 4 merges them
    graph = CommitGraph(
        tuple(f"{i:040x}" for i in range(5)),
        ((), (), (1,), (0,), (3, 2)),
        (False, False, True, True, True),
        0,
        4,
    )
    context, _ = context_of(graph)
    assert comparison_parents(context, (4,), 4) == (3,)
    assert comparison_parents(context, (2,), 2) == (1,)
    blocked, _ = context_of(replace(graph, untestable={3: "skipped", 0: "skipped"}))
    assert comparison_parents(blocked, (4,), 4) == (2,)  # better than none


def test_untestable_commits_below_cannot_be_told_apart_up_to_those_that_count() -> None:
    context = forked()
    assert inseparable_commits(context, 5) == (1, 2, 3, 4, 5)
    assert inseparable_commits(context, 6) == (1, 2, 6)
    assert inseparable_commits(context, 5, counted=(3,)) == (4, 5)
    assert inseparable_commits(forked({**BROKEN, 0: "skipped"}), 6) == (1, 2, 6)  # good is no suspect


@pytest.mark.parametrize(
    ("commits", "measured", "wanted"),
    [
        ((1, 2), (9, 8, 6), 6),
        ((1, 2), (5, 7, 6), 6),  # 5 stands for 3 and 4 as well
        ((1, 2), (7, 5), 7),
        ((3,), (5, 7), 7),
        ((3,), (7, 8), 7),
        ((3,), (8, 9), 5),  # 7 lies below 8, and 5 below 9
        ((1, 2, 3, 4), (9,), 5),
        ((3, 4), (5, 9), 5),
    ],
)
def test_a_set_is_measured_by_a_commit_with_nothing_testable_between(
    commits: tuple[int, ...], measured: tuple[int, ...], wanted: int
) -> None:
    assert commit_measured_for(forked(), commits, measured) == wanted


def test_only_what_can_be_tested_is_measured_for_a_set() -> None:
    blocked = dict.fromkeys((1, 2, 3, 4, 5), "skipped")
    assert commit_measured_for(forked(blocked), (3, 4), (5, 9)) == 9
    assert commit_measured_for(forked(blocked), (3, 4), (5,)) == 9
    assert commit_measured_for(forked(dict.fromkeys(range(1, 10), "skipped")), (3, 4), (5, 9)) is None
    between = forked(dict.fromkeys((1, 3, 7, 8), "skipped"))
    assert commit_measured_for(between, (1, 3), (9,)) == 4  # 2 lies between 9 and 1


def test_beside_a_set_is_what_contains_a_part_of_it_and_not_its_newest() -> None:
    context, every = forked(), range(10)
    assert commits_beside(context, (1, 2, 3, 4, 5), 5, every) == (6, 7, 8)
    assert commits_beside(context, (4, 5), 5, every) == ()
    assert commits_beside(context, (5,), 5, every) == ()
    blocked = forked({**BROKEN, 6: "skipped"})
    assert commits_beside(blocked, (1, 2, 3, 4, 5), 5, every) == (7, 8)
    assert commits_beside(blocked, (1, 2, 3, 4, 5), 5, every, counted=(6,)) == (6, 7, 8)


def test_a_branch_that_lacks_part_of_goods_history_does_not_split_a_set() -> None:
    """0 is good, 1 an older fork point; 2 on 1 cannot be tested; 3 merges it and 0, 4 stands on it."""
    graph = CommitGraph(
        tuple(f"{i:040x}" for i in range(6)),
        ((), (), (1,), (0, 2), (2,), (3, 4)),
        (False, False, True, True, True, True),
        0,
        5,
        untestable={2: "skipped"},
    )
    context, _ = context_of(graph)
    assert inseparable_commits(context, 3) == (2, 3)
    assert comparison_parents(context, (2, 3), 3) == (0,)  # and not 1, as the oldest of the set
    assert commits_beside(context, (2, 3), 3, range(6)) == ()
    assert commits_beside(context, (2, 4), 4, range(6)) == ()  # 3 has good, and 4 has not


@pytest.mark.parametrize(
    ("suspects", "measured", "wanted"),
    [
        ((4, 5), (6, 8), (8,)),  # leaves just these
        ((4, 5), (6, 8, 7), (7,)),  # as much, with fewer commits of its own
        ((4, 5), (6,), (6,)),  # 3 stays
        ((3,), (6, 7), (6, 7)),  # one below, one above
        ((1, 2), (6, 7), (6,)),
        ((1, 2), (7,), (7,)),
        ((1, 2, 3, 4), (6, 7), ()),  # that it is not the newest is not worth boots
        ((1, 2, 3, 4, 5), (6, 7), ()),
        ((4, 5), (), ()),
    ],
)
def test_a_set_is_split_by_what_the_search_measured(
    suspects: tuple[int, ...], measured: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    assert commits_to_split(forked(), suspects, 5, measured) == wanted


def test_what_has_fresh_boots_splits_before_others_do() -> None:
    context = forked(visits=[Seen(8, purpose="certify"), Seen(6, purpose="search")])
    assert commits_to_split(context, (4, 5), 5, (6, 7, 8)) == (8,)
    assert commits_to_split(context, (3,), 5, (6, 7, 8)) == (8, 6)
    assert commits_to_split(context, (1, 2, 3, 4, 5), 5, (6, 7, 8)) == (8,)


def test_a_set_can_be_split_where_something_testable_contains_a_part_of_it() -> None:
    assert can_be_split(forked(), (1, 2, 3))
    assert can_be_split(forked(), (3, 4, 5))
    assert not can_be_split(forked(), (1, 2))
    assert not can_be_split(forked(), (3,))
    assert not can_be_split(forked({**BROKEN, 6: "skipped"}), (1, 2, 3))
