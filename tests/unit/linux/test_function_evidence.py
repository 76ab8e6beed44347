"""Commits by what they change of the functions whose counts differ."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bisector.linux.exact_profile import compare_exactly
from bisector.linux.function_evidence import weigh
from bisector.linux.profile import Profile, Symbol
from bisector.model.facts import TouchedCode
from tests.bench.counters.ranks import rank


def profile(callers: Mapping[tuple[str, str], float] | None = None, **own: float) -> Profile:
    symbols = {Symbol(name, "kernel"): value for name, value in own.items()}
    symbols[Symbol("[user programs]", "user")] = 1000.0 * len(own)
    return Profile("p", symbols, total=1.0, exact=True, callers=callers or {})


FOUND = compare_exactly(
    profile(lock=100.0, read=50.0, gone=20.0, same=7.0), profile(lock=160.0, read=70.0, same=7.0)
)
CALLED_BEFORE = {("lock", "same"): 40.0, ("lock", "other"): 60.0, ("read", "third.isra.0"): 50.0}
CALLED_AFTER = {("lock", "same"): 90.0, ("lock", "other"): 60.0, ("read", "third.isra.0"): 70.0}
CALLED = compare_exactly(
    profile(CALLED_BEFORE, lock=100.0, read=50.0, gone=20.0, same=7.0, other=1.0, third=2.0),
    profile(CALLED_AFTER, lock=160.0, read=70.0, same=7.0, other=1.0, third=2.0),
)
COMMITS = [
    TouchedCode("lock", frozenset(["lock", "same"])),
    TouchedCode("small", frozenset(["read.isra.0"])),
    TouchedCode("both", frozenset(["read", "gone"]), frozenset(["include/a.h"])),
    TouchedCode("header", frozenset(["same"]), frozenset(["include/a.h"])),
    TouchedCode("kconfig", anything=frozenset(["Kconfig"])),
    TouchedCode("elsewhere", frozenset(["same", "unknown"])),
]


def test_a_commit_has_the_share_of_the_functions_that_it_changes() -> None:
    found = {one.sha: (one.kind, one.share, one.functions) for one in weigh(COMMITS, FOUND)}
    assert found == {
        "lock": ("differs", 0.6, ("lock",)),
        "small": ("differs", 0.2, ("read",)),
        "both": ("differs", 0.4, ("gone", "read")),
        "header": ("anything", 0.0, ()),
        "kconfig": ("anything", 0.0, ()),
        "elsewhere": ("elsewhere", 0.0, ()),
    }


@pytest.mark.parametrize(
    ("sha", "ranks"),
    [("lock", (1, 1)), ("both", (2, 2)), ("small", (3, 3)), ("kconfig", (4, 5)), ("elsewhere", (6, 6))],
)
def test_what_is_equal_has_a_range_of_ranks(sha: str, ranks: tuple[int, int]) -> None:
    assert rank(weigh(COMMITS, FOUND), sha) == ranks


def test_where_nothing_differs_nobody_is_suspect() -> None:
    equal = compare_exactly(profile(lock=1.0), profile(lock=1.0))
    assert {one.kind for one in weigh(COMMITS, equal)} == {"anything", "elsewhere"}
    assert {one.share for one in weigh(COMMITS, equal)} == {0.0}


def test_a_commit_that_changes_a_caller_has_what_is_executed_for_it() -> None:
    commits = [
        *COMMITS,
        TouchedCode("caller", frozenset(["same", "other", "third"]), frozenset(["Kconfig"])),
        TouchedCode("innocent caller", frozenset(["other"])),  # of what grew, but for another one
    ]
    found = {one.sha: (one.kind, one.share, one.functions) for one in weigh(commits, CALLED)}
    assert found["lock"] == ("differs", 0.6, ("lock",))
    assert found["header"] == ("calls", 0.5, ("same",))
    assert found["caller"] == ("calls", 0.7, ("same", "third"))
    assert found["innocent caller"] == ("elsewhere", 0.0, ())
    ordered = sorted(commits, key=lambda one: rank(weigh(commits, CALLED), one.sha))
    assert [one.sha for one in ordered] == [
        *("lock", "both", "small", "caller"),
        *("header", "elsewhere", "kconfig", "innocent caller"),
    ]
