"""Counted profiles: the differences of functions add up to the effect, whatever is shown of them."""

from __future__ import annotations

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
