"""Which bisection a free testbed serves: tables of cases, and what holds of every lab that shares."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisector.engine.shares import schedule
from bisector.engine.shares.schedule import Claimant, choose, should_yield

ALL = "tuvwxyz"


def claimant(
    name: str, has: str = "", *, priority: int = 5, served: float = 0.0, created: float = 1.0, **more: object
) -> Claimant:
    """Return one whose owner is the first letter of its name. has: testbeds, a letter each."""
    found = Claimant(name, name[0], priority, created, frozenset(ALL), frozenset(has), {"t": served})
    return replace(found, **more)  # type: ignore[arg-type]


def building(name: str, has: str = "", **more: object) -> Claimant:
    """Return one that can do nothing on `t` before a kernel is built."""
    return replace(claimant(name, has), **{"builds": frozenset("t"), **more})  # type: ignore[arg-type]


def measured(name: str, where: str) -> Claimant:
    """Return one that has measured with other executors only."""
    return replace(claimant(name), served={}, measured=frozenset(where))


def here(name: str, **more: object) -> Claimant:
    """Return one that can use one testbed of ours."""
    return claimant(name, testbeds=frozenset("t"), **more)  # type: ignore[arg-type]


def foreign(name: str, has: str) -> Claimant:
    """Return one that others execute."""
    return claimant(name, has, testbeds=frozenset(), waits=True)


@pytest.mark.parametrize(
    ("claimants", "chosen"),
    [
        ([], None),
        ([claimant("a")], "a"),
        ([claimant("a", priority=6), claimant("b", "uvw", served=9.0, created=7.0)], "b"),
        ([claimant("a", "u"), claimant("b", served=9.0, created=7.0)], "b"),
        ([claimant("a", served=2.0), claimant("b", served=1.0, created=7.0)], "b"),
        ([claimant("a", created=2.0), claimant("b", created=1.0)], "b"),
        ([claimant("b"), claimant("a")], "a"),
        ([claimant("a1", "u"), claimant("a2"), claimant("b", served=9.0)], "b"),
        ([claimant("a1", served=8.0), claimant("a2"), claimant("b", served=7.0)], "b"),
        ([claimant("a1", "u"), claimant("a2", "vw"), claimant("b", "xyz")], "a1"),
        ([claimant("a1", "vw"), claimant("a2", "u", testbeds=frozenset("tu")), claimant("b", "x")], "a2"),
        ([claimant("a", waits=True, priority=1), claimant("b", "u")], "b"),
        ([claimant("a", "t")], None),
        ([claimant("a", "t"), claimant("b", "uvw", priority=6)], "b"),
        ([claimant("a", waits=True)], None),
        ([claimant("a", testbeds=frozenset("u")), claimant("b", "uvw")], "b"),
        ([building("a", priority=1), claimant("b", "uvw")], "b"),
        ([building("a")], None),
        ([building("a", builds=frozenset("u"))], "a"),
        ([measured("a", "u"), measured("b", "")], "b"),
        ([measured("a", "u"), measured("b", "tv")], "b"),
        ([foreign("a", "x"), here("a1", elsewhere=frozenset("x")), here("b", served=9.0)], "b"),
        ([foreign("a", "x"), here("a1"), here("b", served=9.0)], "a1"),
    ],
    ids=[
        "nobody",
        "one",
        "urgent",
        "fewer testbeds",
        "waited longer",
        "older",
        "the same each time",
        "its owner has none",
        "its owner waited longer",
        "the poorer one of an owner",
        "only testbeds that it can use count",
        "capped",
        "has it with another executor",
        "another one though it has others",
        "only capped ones",
        "cannot use it",
        "waits for a kernel",
        "only one that waits for a kernel",
        "waits for a kernel elsewhere",
        "a stranger behind one that has measured nowhere",
        "a stranger behind one that has measured here, with whichever executor",
        "its owner has one with another executor",
        "its owner has one with another executor that it cannot use",
    ],
)
def test_who_comes_first(claimants: list[Claimant], chosen: str | None) -> None:
    assert choose("t", claimants) == chosen


@pytest.mark.parametrize(
    ("holder", "others", "yields"),
    [
        (claimant("a", "t"), [], False),
        (claimant("a", "t"), [claimant("b")], True),
        (claimant("a", "t"), [claimant("b", "u")], False),
        (claimant("a", "tv"), [claimant("b", "u")], False),
        (claimant("a", "tvw"), [claimant("b", "u")], True),
        (claimant("a", "tvw"), [claimant("b", priority=6)], False),
        (claimant("a", "t", priority=6), [claimant("b", "uvwxy")], True),
        (claimant("a", "t", waits=True), [], True),
        (claimant("a", "t"), [claimant("b", waits=True)], False),
        (claimant("a1", "t"), [claimant("b1", "u"), claimant("b2")], False),
        (claimant("a1", "t"), [claimant("b1", "u"), claimant("b2", testbeds=frozenset("t"))], True),
        (claimant("a1", "t"), [claimant("a2")], True),
        (claimant("a1", "t"), [claimant("a2", "u")], False),
        (claimant("a1", "tu"), [claimant("a2"), claimant("b", "vw")], True),
        (building("a", "t"), [], False),
        (building("a", "t", priority=2), [claimant("b")], True),
        (building("a", "t"), [claimant("b", "u")], True),
        (building("a", "t"), [building("b", "u", builds=frozenset(), served={"u": 1.0})], False),
        (building("a", "t"), [building("b")], False),
        (building("a", "t"), [building("b", builds=frozenset("u"))], False),
        (building("a", "t"), [claimant("b", waits=True)], False),
        (claimant("a", "t"), [building("b", priority=1)], False),
        (building("a", "t", waits=True), [], True),
    ],
    ids=[
        "nobody",
        "it has none",
        "even",
        "it would come back",
        "uneven",
        "less urgent",
        "more urgent",
        "capped",
        "to a capped one",
        "its owner has one",
        "its owner has one that it cannot use",
        "the same owner's",
        "the same owner's has one",
        "the same owner's behind others that gain nothing",
        "builds, nobody else",
        "builds, less urgent",
        "builds, to one that has measured there",
        "builds, to a stranger that has another",
        "both build",
        "builds, to one that builds elsewhere",
        "builds, to a capped one",
        "to one that builds",
        "builds, capped",
    ],
)
def test_when_a_testbed_goes_to_another(holder: Claimant, others: list[Claimant], yields: bool) -> None:
    assert should_yield("t", holder.id, [holder, *others], 1.0) is yields


class Lab:
    """Bisections on testbeds, a visit of one boot after the other. Owners and testbeds are letters."""

    def __init__(self, claimants: list[Claimant], boot_seconds: float = schedule._EQUAL_SECONDS) -> None:
        """boot_seconds: by default so long that no two waits count as equally long."""
        self.now, self.boot_seconds = 0.0, boot_seconds
        self.measured: set[tuple[str, str]] = set()
        self.claimants = {c.id: replace(c, served={}) for c in claimants}
        self.boots: Counter[str] = Counter()
        self.passed_on = 0

    def boot(self, testbed: str) -> None:
        """Let a boot on a testbed end and the next one begin."""
        self.now += self.boot_seconds
        everybody = list(self.claimants.values())
        holder = next((c for c in everybody if testbed in c.has), None)
        if holder is not None:
            if not should_yield(testbed, holder.id, everybody, self.now):
                self.boots[holder.id] += 1
                return
            left = replace(
                holder, has=holder.has - {testbed}, served={**(holder.served or {}), testbed: self.now}
            )
            self.claimants[holder.id] = left
        chosen = choose(testbed, list(self.claimants.values()))
        if chosen is not None:
            assert holder is None or holder.waits or chosen != holder.id, "a testbed that came back at once"
            self.passed_on += holder is not None
            taker = self.claimants[chosen]
            self.claimants[chosen] = replace(taker, has=taker.has | {testbed})
            self.boots[chosen] += 1
            self.measured.add((chosen, testbed))

    def of_owners(self, what: Counter[str]) -> Counter[str]:
        found: Counter[str] = Counter()
        for name in self.claimants:
            found[name[0]] += what[name]
        return found


labs = st.integers(1, 4).flatmap(
    lambda testbeds: st.lists(
        st.builds(
            lambda owner, number, usable: claimant(
                f"{owner}{number}", created=float(number), testbeds=frozenset(ALL[i] for i in usable)
            ),
            st.sampled_from("abc"),
            st.integers(0, 99),
            st.sets(st.integers(0, testbeds - 1), min_size=1),
        ),
        min_size=1,
        max_size=7,
        unique_by=lambda c: c.id,
    )
)


@pytest.mark.parametrize("boot_seconds", [schedule._EQUAL_SECONDS, 100.0])
@settings(max_examples=20, deadline=None)
@given(claimants=labs, order=st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_nobody_starves_among_equals(
    claimants: list[Claimant], order: list[int], boot_seconds: float
) -> None:
    """Whatever testbeds they can use, and in whatever order boots end, all bisections measure again."""
    lab = Lab(claimants, boot_seconds)
    names = sorted({t for c in claimants for t in c.testbeds})
    for _ in range(3):
        before = lab.boots.copy()
        for _ in range(4 * len(claimants)):
            for place in (*order, *range(4)):
                lab.boot(names[place % len(names)])
        assert {name for name, boots in lab.boots.items() if boots > before[name]} == set(lab.claimants)


@given(
    st.lists(st.sampled_from(["a1", "a2", "a3", "b1", "b2", "c1", "d1"]), min_size=1, unique=True),
    st.integers(1, 7),
)
def test_shares_of_owners_and_of_their_bisections_are_within_one_visit_of_even(
    names: list[str], testbeds: int
) -> None:
    lab = Lab([claimant(name, testbeds=frozenset(ALL[:testbeds])) for name in names])
    owners = {name[0] for name in names}
    for turn in range(40):
        for testbed in ALL[:testbeds]:
            lab.boot(testbed)
        if turn > 10:
            has = Counter({c.id: len(c.has) for c in lab.claimants.values()})
            of_owners = lab.of_owners(has)
            assert max(of_owners.values()) - min(of_owners.values()) <= 1
            for owner in owners:
                own = [has[name] for name in names if name[0] == owner]
                assert max(own) - min(own) <= 1
    if testbeds <= len(owners):  # owners take turns: over the whole time, too
        boots = lab.of_owners(lab.boots)
        assert max(boots.values()) - min(boots.values()) <= 1


def test_bisections_come_back_to_the_testbeds_that_they_have_measured_on() -> None:
    """Each has to measure its references on every testbed that it comes to."""
    lab = Lab([claimant(f"a{n:02}", testbeds=frozenset(ALL[:5])) for n in range(10)], boot_seconds=5.0)
    for _ in range(100):
        for testbed in ALL[:5]:
            lab.boot(testbed)
    assert len(lab.measured) <= 15
    assert max(lab.boots.values()) - min(lab.boots.values()) <= 10


def test_a_bisection_whose_testbeds_are_out_of_use_goes_to_others_after_a_while() -> None:
    lab = Lab([claimant(f"a{n}", testbeds=frozenset(ALL[:5])) for n in range(10)], boot_seconds=5.0)
    for _ in range(20):
        for testbed in ALL[:5]:
            lab.boot(testbed)
    homes = {testbed for name, testbed in lab.measured if name == "a0"}
    lab.claimants["a0"] = replace(lab.claimants["a0"], has=frozenset())
    before = lab.boots["a0"]
    for _ in range(300):
        for testbed in set(ALL[:5]) - homes:
            lab.boot(testbed)
    assert lab.boots["a0"] > before


@given(st.integers(2, 5), st.integers(2, 7))
def test_testbeds_that_are_spread_evenly_are_not_passed_on(owners: int, testbeds: int) -> None:
    """A yield costs a boot: with a testbed for each, nothing goes round for ever."""
    lab = Lab([claimant(f"{o}1", testbeds=frozenset(ALL[:testbeds])) for o in "abcde"[:owners]])
    for _ in range(30):
        for testbed in ALL[:testbeds]:
            lab.boot(testbed)
    before = lab.passed_on
    for _ in range(30):
        for testbed in ALL[:testbeds]:
            lab.boot(testbed)
    assert testbeds < owners or lab.passed_on == before


@given(labs, st.lists(st.integers(1, 9), min_size=7, max_size=7), st.lists(st.booleans(), min_size=7))
def test_the_most_urgent_is_served_first_and_a_capped_one_never(
    claimants: list[Claimant], priorities: list[int], capped: list[bool]
) -> None:
    mixed = [replace(c, priority=p, waits=k) for c, p, k in zip(claimants, priorities, capped, strict=False)]
    lab = Lab(mixed)
    for testbed in 2 * sorted({t for c in mixed for t in c.testbeds}):
        able = [c for c in mixed if testbed in c.testbeds and not c.waits]
        lab.boot(testbed)
        holder = next((c for c in lab.claimants.values() if testbed in c.has), None)
        assert (holder is not None) == bool(able)
        if holder is not None:
            assert not holder.waits
            assert holder.priority == min(c.priority for c in able)
