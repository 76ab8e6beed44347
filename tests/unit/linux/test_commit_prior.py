"""Prior weights from git: each factor's direction, who is named by messages, and the bound of one bit."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.linux.commit_prior import cancelled, menders, mentioned, mix, path_factor, place, share, weigh
from bisector.linux.relevance import Change
from bisector.model.goal import Find

A, B, C, D, E = "a1" * 20, "b2" * 20, "c3" * 20, "d4" * 20, "e5" * 20
NEAR_A = A[:-1] + "f"


def _changes(*paths: str) -> tuple[Change, ...]:
    return tuple(Change(path, added=False) for path in paths)


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("kernel/sched.c", 2),
        ("fs/buffer.c", 2),
        ("net/socket.c", 2),
        ("net/ipv4/tcp.c", 2),
        ("arch/x86/mm/fault.c", 2),
        ("include/asm-x86/io.h", 2),
        ("drivers/net/e100.c", 1),
        ("fs/ext2/super.c", 1),
        ("net/wireless/core.c", 1),
        ("arch/arm/mm/fault.c", 0),
        ("Documentation/x86/boot.txt", 0),
        ("MAINTAINERS", 0),
    ],
)
def test_general_code_weighs_more_than_special_code_more_than_none(path: str, rank: int) -> None:
    ranks = sorted({place(_changes(one), "x86_64") for one in ("kernel/x.c", "sound/x.c", "README")})
    assert ranks.index(place(_changes(path), "x86_64")) == rank


def test_the_place_of_a_commit_is_its_most_general_file() -> None:
    assert place(_changes("README", "drivers/a.c", "mm/b.c"), "x86_64") == place(_changes("mm/b.c"), "x86_64")


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (f"Fixes: {A[:12]} (subject)", {A}),
        (f"commit {A[:7]} made it slow", {A}),
        (f"This reverts commit {B}.", {B}),
        (f"commit {A} upstream.\n\nIt mends {B[:10]}.", {B}),
        (f"[ Upstream commit {A} ]", set()),
        (f"(cherry picked from commit {A})", set()),
        (f"backport of upstream commit: {A}", set()),
        (f"{A[:6]} is too short", set()),
        (f"{A[:11]}0 begins like it", set()),
        ("d4d4d4d4 is another's", set()),
    ],
)
def test_who_is_named(message: str, found: set[str]) -> None:
    assert mentioned([message], [A, B, C]) == found


def test_an_id_that_two_commits_begin_with_names_none() -> None:
    assert mentioned([f"see {A[:20]}"], [A, NEAR_A]) == set()
    assert mentioned([f"see {A}"], [A, NEAR_A]) == {A}


def test_only_a_revert_of_the_range_cancels_it_and_what_it_takes_back() -> None:
    assert cancelled({C: f"This reverts commit {A}.\nIt broke what {B} did."}, [A, B, C]) == {A, C}
    assert cancelled({C: f"This reverts commit {D}.", B: f"Fixes: {A}"}, [A, B, C]) == frozenset()


def test_a_revert_that_is_reverted_takes_nothing_back() -> None:
    messages = {B: f"This reverts commit {A}.", C: f"This reverts commit {B}."}
    assert cancelled(messages, [A, B, C]) == {B, C}


@pytest.mark.parametrize(
    ("message", "mends", "of_the_range"),
    [
        (f"Fixes: {D[:12]} (subject)", True, True),
        (f"  fixes: {D[:12]}", True, True),
        (f"This reverts commit {D}.", True, True),
        (f"Since commit {D[:7]} it is slow", True, True),
        (f"Fixes: {A[:12]} (subject)", False, True),
        (f"This reverts commit {A}.", False, True),
        (f"commit {D} upstream.\n\nspeed it up", False, False),
        (f"commit {D} upstream.\n\nFixes: {E[:12]}", True, True),
        (f"see {D[:12]}", False, False),
        ("commit deadly sins", False, False),
    ],
)
def test_who_mends_what_the_older_end_has(message: str, mends: bool, of_the_range: bool) -> None:
    assert (menders({B: message}, [A, B, C]) == {B}) is mends
    assert (menders({B: message}, [A, B, C], of_the_range=True) == {B}) is of_the_range


def test_each_kind_of_named_commits_has_its_part_of_half_and_undone_ones_lose() -> None:
    assert share([1, 1, 1, 1], named=[[3]]) == pytest.approx([1 / 8, 1 / 8, 1 / 8, 5 / 8])
    assert share([1, 1, 1, 1], named=[[3], []]) == share([1, 1, 1, 1], named=[[3]])
    assert share([1, 1, 1, 1], named=[[3], [0, 1]]) == pytest.approx([2 / 8, 2 / 8, 1 / 8, 3 / 8])
    assert share([1, 3]) == pytest.approx([1 / 4, 3 / 4])
    kept, lost = share([1, 1], undone=[1])
    assert kept > 4 * lost > 0


@given(
    weights=st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=60),
    draw=st.data(),
)
def test_a_wrong_prior_costs_at_most_one_bit(weights: list[float], draw: st.DataObject) -> None:
    some = st.sets(st.integers(0, len(weights) - 1))
    mixed = mix(share(weights, named=draw.draw(st.lists(some, max_size=2)), undone=draw.draw(some)))
    assert math.fsum(mixed) == pytest.approx(1)
    assert all(math.log2(one * len(mixed)) >= -1 - 1e-9 for one in mixed)


CHANGES = {
    A: _changes("mm/a.c"),
    B: _changes("drivers/b.c"),
    C: _changes("README"),
    D: _changes("kernel/d.c"),
}


def test_weights_have_a_mean_of_one_and_order_commits_by_what_they_change() -> None:
    weights, named = weigh([A, B, C, D, E], CHANGES, "x86_64")
    general, special, nothing, same, merge = weights
    assert sum(weights) == pytest.approx(5)
    assert general == same > special > merge > nothing >= 0.5
    assert named == 0


def test_messages_raise_who_is_mended_later_and_lower_who_is_taken_back_in_the_range() -> None:
    plain, _ = weigh([A, B, C, D], CHANGES, "x86_64")
    weights, named = weigh(
        [D, A, B, C], CHANGES, "x86_64", inside={C: f"This reverts commit {D}."}, later=[f"Fixes: {A[:12]}"]
    )
    assert named == 1
    assert weights[1] > plain[0]
    assert weights[0] < plain[3]
    unmoved, none = weigh([A, B, C, D], CHANGES, "x86_64", inside={B: f"Fixes: {A[:12]}", D: f"Fixes: {E}"})
    assert (unmoved, none) == (plain, 0)


OTHER, OLDER = "f6" * 20, "0a" * 20
SAID = {
    B: f"This reverts commit {A}.",
    C: f"Fixes: {OLDER[:12]} (subject)",
    E: f"This reverts commit {OLDER}.",
}
ALIKE = dict.fromkeys((A, B, C, D, E, OTHER), _changes("mm/a.c"))


@pytest.mark.parametrize(
    ("find", "scan", "moved", "named"),
    [
        ("regression", False, "--=+=", 1),
        ("fix", False, "--+=+", 2),
        ("regression", True, "+++++", 5),
        ("fix", True, "+++++", 5),
    ],
)
def test_what_messages_tell_depends_on_what_is_looked_for(
    find: Find, scan: bool, moved: str, named: int
) -> None:
    """A: reverted by B; C, E: mend and revert what the older end has; D: mended after the newer end.

    A search for a fix weighed nothing by messages, a scan lowered the very pairs that it looks for.
    """
    weights, found = weigh(
        [*ALIKE], ALIKE, "x86_64", find=find, scan=scan, inside=SAID, later=[f"Fixes: {D[:12]}"]
    )
    *named_ones, usual = weights
    signs = ("=" if one == pytest.approx(usual) else "+" if one > usual else "-" for one in named_ones)
    assert ("".join(signs), found) == (moved, named)


def test_in_a_scan_many_fixes_leave_the_few_that_are_named_their_part() -> None:
    shas = [f"{i:02x}" * 20 for i in range(65, 105)]
    said = dict.fromkeys(shas[10:], f"Fixes: {OLDER}")
    both, _ = weigh(
        shas, dict.fromkeys(shas, ALIKE[A]), "x86_64", scan=True, inside=said, later=[f"Fixes: {shas[0]}"]
    )
    assert both[0] > 5 > 1 > both[10] > both[1]


@pytest.mark.parametrize(
    ("paths", "factor"),
    [
        (("mm/slab.c",), 4),
        (("mm/kasan/init.c",), 0.5),
        (("mm/kasan/init.c", "mm/slab.c"), 4),
        (("kernel/fork.c",), 9),
        (("kernel/fork.c.orig",), 1),
        (("mmap.c",), 1),
        (("mm/kasan/init.c", "lib/sort.c"), 1),
        ((), 1),
    ],
)
def test_the_closest_folder_counts_for_a_path_and_the_largest_factor_for_a_commit(
    paths: tuple[str, ...], factor: float
) -> None:
    assert path_factor(_changes(*paths), {"mm/": 4, "mm/kasan": 0.5, "kernel/fork.c": 9}) == factor


def test_factors_of_a_user_multiply_what_git_tells() -> None:
    shas = [A, B, C, D, E]
    plain, _ = weigh(shas, CHANGES, "x86_64")
    assert weigh(shas, CHANGES, "x86_64", paths={"block/": 7})[0] == plain
    both, _ = weigh(shas, CHANGES, "x86_64", commits={D: 2}, paths={"mm/": 4, "kernel/d.c": 2})
    assert both[0] == both[3] > plain[0]
    assert all(now < before for now, before in zip(both[1:3], plain[1:3], strict=True))
    merge, _ = weigh(shas, CHANGES, "x86_64", commits={E: 8})
    assert merge[4] == pytest.approx(merge[0]), "eight times the weight of a merge is that of general code"


FACTORS = st.floats(1e-3, 1e3)


@given(
    find=st.sampled_from(["regression", "fix"]),
    scan=st.booleans(),
    said=st.dictionaries(
        st.sampled_from([A, B, C, D, E]),
        st.sampled_from(
            [f"{words} {sha}" for words in ("Fixes:", "This reverts commit") for sha in (A, B, C, OLDER)]
        ),
    ),
    later=st.lists(st.sampled_from([A, B, C, D, E])),
)
def test_messages_that_mislead_cost_at_most_one_bit_whatever_is_looked_for(
    find: Find, scan: bool, said: dict[str, str], later: list[str]
) -> None:
    shas = [A, B, C, D, E]
    weights, named = weigh(shas, CHANGES, "x86_64", find=find, scan=scan, inside=said, later=later)
    assert sum(weights) == pytest.approx(5)
    assert all(math.log2(one) >= -1 - 1e-9 for one in weights)
    assert 0 <= named <= 5


@given(
    commits=st.dictionaries(st.sampled_from([A, B, C, D, E]), FACTORS),
    paths=st.dictionaries(st.sampled_from(["mm/", "mm/a.c", "drivers/", "README", "kernel/"]), FACTORS),
)
def test_wrong_factors_of_a_user_cost_at_most_one_bit(
    commits: dict[str, float], paths: dict[str, float]
) -> None:
    weights, _ = weigh(
        [A, B, C, D, E], CHANGES, "x86_64", later=[f"Fixes: {A}"], commits=commits, paths=paths
    )
    assert sum(weights) == pytest.approx(5)
    assert all(math.log2(one) >= -1 - 1e-9 for one in weights)


@given(
    commits=st.dictionaries(st.sampled_from([A, B, C, D, E]), FACTORS),
    seen=st.dictionaries(st.sampled_from([A, B, C, D, E]), FACTORS),
)
def test_what_was_measured_at_the_ends_and_what_git_tells_cost_at_most_one_bit_together(
    commits: dict[str, float], seen: dict[str, float]
) -> None:
    weights, _ = weigh(
        [A, B, C, D, E],
        CHANGES,
        "x86_64",
        inside={B: f"This reverts commit {A}."},
        commits=commits,
        seen=seen,
    )
    assert sum(weights) == pytest.approx(5)
    assert all(math.log2(one) >= -1 - 1e-9 for one in weights)


def test_what_was_measured_is_multiplied_with_what_git_tells_before_both_are_mixed() -> None:
    shas = [A, B, C, D, E]
    git, named = weigh(shas, CHANGES, "x86_64", later=[f"Fixes: {A}"])
    both, same = weigh(shas, CHANGES, "x86_64", later=[f"Fixes: {A}"], seen={B: 8.0, C: 0.5})
    assert named == same == 1
    before, after = ([one - 0.5 for one in weights] for weights in (git, both))  # without the uniform half
    assert after[1] / after[0] == pytest.approx(8 * before[1] / before[0])
    assert after[2] / after[0] == pytest.approx(0.5 * before[2] / before[0])
    assert weigh(shas, CHANGES, "x86_64", seen=dict.fromkeys(shas, 8.0))[0] == pytest.approx(
        weigh(shas, CHANGES, "x86_64")[0]
    )
