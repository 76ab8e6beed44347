"""Which bisection a free testbed serves: a table of cases, and that sharing ends in an even state."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.engine.schedule import Claimant, choose, should_yield


def claimant(
    name: str, *, priority: int = 1, using: int = 0, served: float = 0.0, created: float = 1.0
) -> Claimant:
    return Claimant(name, priority, using, served, created)


@pytest.mark.parametrize(
    ("claimants", "chosen"),
    [
        ([], None),
        ([claimant("a")], "a"),
        ([claimant("a", priority=2), claimant("b", using=5, served=9.0, created=7.0)], "b"),
        ([claimant("a", using=1), claimant("b", served=9.0, created=7.0)], "b"),
        ([claimant("a", served=2.0), claimant("b", served=1.0, created=7.0)], "b"),
        ([claimant("a", created=2.0), claimant("b", created=1.0)], "b"),
        ([claimant("b"), claimant("a")], "a"),
    ],
    ids=["nobody", "one", "urgent", "fewer testbeds", "waited longer", "older", "the same each time"],
)
def test_who_comes_first(claimants: list[Claimant], chosen: str | None) -> None:
    assert choose(claimants) == chosen


@pytest.mark.parametrize(
    ("holder", "other", "yields"),
    [
        (claimant("a", using=1), claimant("b", using=0), True),
        (claimant("a", using=1), claimant("b", using=1), False),
        (claimant("a", using=2), claimant("b", using=1), False),
        (claimant("a", using=3), claimant("b", using=1), True),
        (claimant("a", using=3), claimant("b", using=0, priority=2), False),
        (claimant("a", using=1, priority=2), claimant("b", using=5), True),
    ],
    ids=["it has none", "even", "it would come back", "uneven", "less urgent", "more urgent"],
)
def test_when_a_testbed_goes_to_another(holder: Claimant, other: Claimant, yields: bool) -> None:
    assert should_yield(holder, [other]) is yields
    assert should_yield(holder, []) is False


@given(st.lists(st.integers(0, 6), min_size=2, max_size=5), st.integers(0, 3))
def test_passing_testbeds_on_makes_them_even_and_ends(using: list[int], more: int) -> None:
    """Each testbed that should be passed on is, to the one chosen; nothing goes round for ever."""
    using = [*using, more]
    for _ in range(100):
        claimants = [claimant(str(i), using=n) for i, n in enumerate(using)]
        givers = [c for c in claimants if c.using and should_yield(c, [o for o in claimants if o is not c])]
        giver = max(givers, key=lambda c: c.using, default=None)
        if giver is None or (min(using) == 0 and sum(using) < len(using)):
            break  # fewer testbeds than bisections: they take turns
        left = [claimant(c.id, using=c.using - (c is giver)) for c in claimants]
        taker = choose(left)
        assert taker is not None
        using[int(giver.id)] -= 1
        using[int(taker)] += 1
    else:
        raise AssertionError("it goes round")
    if sum(using) >= len(using):
        assert max(using) - min(using) <= 2
