"""Commits without a boot that split what remains."""

from __future__ import annotations

import numpy as np

from bisector.model.records import Built, Marked
from bisector.search.separation.splitting import (
    built_without_boot,
    commits_that_split,
    splits_likely_class,
    splits_of_likely_classes,
)
from tests.support.searching import Seen, context_of, linear


def test_a_kernel_that_was_booted_under_another_commit_was_booted() -> None:
    builds = [Built(c, True, 20.0, f"k{min(c, 5)}") for c in range(3, 8)]
    context, _ = context_of(linear(16), [Seen(0), Seen(6), Seen(16)], records=builds)
    assert built_without_boot(context, {3, 4, 5, 6, 7}) == {3, 4}


def test_only_commits_amid_the_suspects_that_were_not_booted_split_them() -> None:
    visits = [Seen(0), Seen(12, (110.0, 110.1, 109.9)), Seen(4), Seen(8, ())]
    builds = [Built(c, True, 20.0, f"k{c}") for c in (4, 6, 7)]
    marks = [Marked(7, "skip"), Marked(9, "bad")]
    context, cache = context_of(linear(12), visits, records=[*builds, *marks])
    posterior = cache.posterior(context, (), 0.1)
    suspects = np.zeros(13)
    suspects[5:12] = 0.005, 0.095, 0.2, 0.2, 0.4, 0.095, 0.005
    mass = context.dag.mass(suspects)
    # 7 is skipped, 8 was booted and ran nothing, 9 is marked, and 11 is above all.
    assert np.flatnonzero(commits_that_split(posterior, context, mass)).tolist() == [5, 6, 10]


def test_a_commit_counts_that_splits_a_class_which_comes_into_question() -> None:
    slow = (110.0, 110.1, 109.9)
    visits = [Seen(0), Seen(16, slow), Seen(4), Seen(8, slow)] * 2
    context, cache = context_of(linear(16), visits)
    posterior = cache.posterior(context, (), 0.1)

    def splits(*commits: int) -> bool:
        fresh = np.zeros(17, dtype=bool)
        fresh[list(commits)] = True
        return splits_likely_class(posterior, fresh)

    assert (splits(6), splits(6, 12), splits(12), splits(2), splits(), splits(0)) == (
        *(True, True),
        *(False, False, False, False),
    )


def test_the_likeliest_classes_are_split_most_evenly_by_what_may_be_measured() -> None:
    """Between 4 and 8, and between 12 and 16, levels rise; nowhere else."""
    slow, slower = (110.0, 110.1, 109.9), (121.0, 121.1, 120.9)
    visits = [Seen(0), Seen(16, slower), Seen(4), Seen(8, slow), Seen(12, slow)] * 2
    context, cache = context_of(linear(16), visits)
    posterior = cache.posterior(context, (), 0.1)

    def split(*able: int) -> list[int]:
        fresh = np.zeros(17, dtype=bool)
        fresh[list(able)] = True
        return sorted(splits_of_likely_classes(posterior, context, fresh))

    assert split(*range(17)) == [6, 14]
    assert split(2, 5, 10, 11, 13) == [5, 13]
    assert split(2, 10, 11) == []  # they halve what lies above and below, and tell nothing
