"""Two profiles as text."""

from __future__ import annotations

import re

from bisector.linux.call_graph import callees, callers
from bisector.linux.profile import Profile, compare_profiles
from bisector.report.profiles import profile_table
from tests.support.samples import CALLS, NEW, OLD, k


def words(text: str) -> str:
    return " ".join(text.split())


def test_ranks_and_changes_with_known_numbers() -> None:
    text = profile_table.render(compare_profiles(OLD, NEW), 10)
    assert re.search(r"^1 +92.00% +\[k\] idle +86.00% +\[k\] idle$", text, re.MULTILINE)
    assert re.search(r"^2 +5.00% +\[k\] copy +9.00% +\[k\] lock$", text, re.MULTILINE)
    assert re.search(r"^\[k\] lock +3.00% +9.00% +\+6.00 +more$", text, re.MULTILINE)
    assert re.search(r"^\[k\] copy +5.00% +5.00% +\+0.00 +the same$", text, re.MULTILINE)
    assert "More in new than in old: lock +6.00 points." in text


def test_call_chains_of_one_profile_alone_are_not_compared() -> None:
    """Beside a kernel whose profile has no chains, all that calls anything had risen from nothing."""
    own = {k("copy"): 50.0, k("lock"): 50.0}
    flat, chains = Profile("flat", own), Profile("chains", own, whole={**own, k("write"): 100.0})
    assert "WITH ALL IT CALLS" not in profile_table.render(compare_profiles(flat, chains), 10)
    assert "WITH ALL IT CALLS" not in profile_table.render(compare_profiles(chains, flat), 10)
    assert "WITH ALL IT CALLS" in profile_table.render(compare_profiles(chains, chains), 10)


def test_only_the_top_is_shown() -> None:
    text = profile_table.render(compare_profiles(OLD, NEW), 1)
    assert "copy" not in text


def test_functions_that_the_commit_changes() -> None:
    text = words(profile_table.render(compare_profiles(OLD, NEW, touched=["lock", "never_called"]), 10))
    assert "*[k] lock" in text
    assert "* Changed by the commit: lock +6.00 points." in text
    assert "in neither profile (inlined, or not run): never_called." in text


def test_more_calls_are_no_longer_calls() -> None:
    text = words(profile_table.render(compare_profiles(*CALLS), 10))
    assert "b calls alloc 100.0% more often, and a call takes 0.0% less time." in text
    assert "[k] free 500 500 +0.00% 0.100 us 0.150 us +50.00%" in text


def test_a_symbol_below_the_end_of_a_list() -> None:
    a, b = Profile("a", {k("x"): 2.0}, cut=0.005), Profile("b", {k("x"): 2.0, k("z"): 0.8}, cut=0.008)
    assert "[k] z <0.50% 0.80% +0.30 more, at least" in words(
        profile_table.render(compare_profiles(a, b), 10)
    )


def test_trees() -> None:
    found = compare_profiles(OLD, NEW)
    tree = ("lock", callers(OLD, NEW, "lock", 0.0), callees(OLD, NEW, "lock", 0.0))
    text = profile_table.render(found, 1, [tree, ("absent", [], [])])
    assert re.search(r"^3.00% +9.00% +\+6.00 +\[k\] lock$", text, re.MULTILINE)
    assert re.search(r"^3.00% +9.00% +\+6.00 {5}\[k\] vfs_read$", text, re.MULTILINE)
    assert "absent: in no call chain of either profile" in text
