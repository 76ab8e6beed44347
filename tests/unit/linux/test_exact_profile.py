"""Counted profiles: the differences of functions add up to the effect, whatever is shown of them."""

from __future__ import annotations

from dataclasses import replace

from bisector.linux.exact_profile import compare_exactly
from bisector.linux.profile import Profile, Symbol, compare_profiles

OLD = {
    Symbol("lock", "kernel"): 100.0,
    Symbol("gone", "kernel"): 30.0,
    Symbol("[user programs]", "user"): 50.0,
}
NEW = {Symbol("lock", "kernel"): 90.0, Symbol("new", "kernel"): 75.0, Symbol("[user programs]", "user"): 50.0}


def profile(name: str, own: dict[Symbol, float]) -> Profile:
    return Profile(name, own, total=sum(own.values()), exact=True)


def test_the_differences_add_up() -> None:
    found = compare_exactly(profile("a", OLD), profile("b", NEW), ["lock", "elsewhere"])
    assert [(one.symbol.name, one.change, one.touched) for one in found.changes] == [
        ("new", 75.0, False),
        ("gone", -30.0, False),
        ("lock", -10.0, True),
        ("[user programs]", 0.0, False),
    ]
    assert found.effect == 35.0 == found.b.total - found.a.total
    for shown in range(5):
        assert sum(one.change for one in found.changes[:shown]) + found.rest(shown) == found.effect


def test_counts_are_never_called_chance() -> None:
    found = compare_profiles(profile("a", OLD), profile("b", NEW))
    assert all(line.certain is True for line in found.symbols)
    assert found.warnings == ()


MAIN, LEFT = Symbol("pipe:main", "user"), Symbol("[other user code]", "user")
PROGRAMS = Symbol("[user programs]", "user")


def test_programs_of_two_versions_are_compared_in_what_both_tell() -> None:
    told = replace(
        profile("b", {Symbol("lock", "kernel"): 90.0, MAIN: 40.0, LEFT: 12.0}),
        event="instructions",
        misses={Symbol("lock", "kernel"): (1.0,), MAIN: (2.0,)},
        spreads={Symbol("lock", "kernel"): 0.0, MAIN: 1.0},
    )
    both = compare_exactly(told, told)
    assert {one.symbol for one in both.changes} == {Symbol("lock", "kernel"), MAIN, LEFT}
    before = replace(profile("a", OLD), event="instructions", misses={Symbol("lock", "kernel"): (1.0,)})
    found = compare_exactly(before, told)
    assert {one.symbol.name: one.change for one in found.changes} == {
        "gone": -30.0,
        "lock": -10.0,
        "[user programs]": 2.0,
    }
    assert (found.effect, found.b.total) == (-38.0, 142.0)
    assert found.b.misses.keys() == {Symbol("lock", "kernel")}
    alone = replace(told, own={Symbol("lock", "kernel"): 90.0, PROGRAMS: 52.0})
    assert PROGRAMS in compare_exactly(alone, alone).a.own
    assert compare_exactly(before, replace(alone, misses={PROGRAMS: (2.0,)})).b.misses == {}


def test_of_misses_an_earlier_version_told_those_of_the_kernel() -> None:
    unit = "modelled misses of L1d"
    before = replace(profile("a", {Symbol("lock", "kernel"): 90.0}), event=unit)
    after = replace(profile("b", {Symbol("lock", "kernel"): 95.0, PROGRAMS: 30.0}), event=unit)
    found = compare_exactly(before, after)
    assert [(one.symbol.name, one.change) for one in found.changes] == [("lock", 5.0)]
    assert (found.a.total, found.b.total) == (90.0, 95.0)
