"""Two profiles side by side: pairing of symbols, points, chance, bounds."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.linux.profile import Profile, Symbol, compare_profiles, folded, source_name
from tests.support.samples import CALLS, NEW, OLD, k

SYMBOLS = st.builds(Symbol, st.sampled_from("abc"), st.sampled_from(["kernel", "user", ""]))


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("finish_task_switch.isra.0", "finish_task_switch"),
        ("get_common_indices.constprop.0", "get_common_indices"),
        ("do_exit.cold", "do_exit"),
        ("foo.part.3.isra.1", "foo"),
        ("schedule", "schedule"),
        ("a.b", "a.b"),
    ],
)
def test_parts_of_a_function_go_by_its_name_in_the_source(symbol: str, name: str) -> None:
    assert source_name(symbol) == name


def test_own_and_whole_weights_of_stacks() -> None:
    assert OLD.own == {k("copy"): 500, k("lock"): 300, k("idle"): 9200}
    assert OLD.whole[k("vfs_read")] == 800


def test_a_function_that_recurses_counts_once_a_stack() -> None:
    _, whole = folded({(k("walk"), k("walk"), k("walk"), k("leaf")): 7})
    assert whole == {k("walk"): 7, k("leaf"): 7}


def test_the_largest_change_comes_first_in_points_of_the_total() -> None:
    found = compare_profiles(OLD, NEW)
    assert [(x.symbol.name, round(x.change, 4)) for x in found.symbols[:2]] == [
        ("idle", -0.06),
        ("lock", 0.06),
    ]
    assert found.symbols[1].certain
    copy = next(x for x in found.symbols if x.symbol.name == "copy")
    assert (copy.change, copy.certain) == (0.0, False)


def test_chance_alone_is_rarely_called_certain() -> None:
    draw = random.Random(5)
    names = [f"f{i}" for i in range(40)]
    alarms = 0
    for _ in range(60):
        sides: list[Profile] = []
        for name in ("a", "b"):
            counts = dict.fromkeys(names, 0.0)
            for chosen in draw.choices(names, k=3000):
                counts[chosen] += 1
            sides.append(Profile(name, {k(n): c for n, c in counts.items()}, total=3000, samples=3000))
        alarms += any(x.certain for x in compare_profiles(sides[0], sides[1]).symbols)
    assert alarms <= 9  # 60 pairs at 5% for any line at all: 10 or more come about once in 800 times


def test_a_symbol_that_one_list_does_not_reach_changed_by_at_least_that_much() -> None:
    a = Profile("a", {k("x"): 2.0, k("y"): 0.5}, cut=0.005)
    b = Profile("b", {k("x"): 2.0, k("z"): 0.8}, cut=0.008)
    lines = {x.symbol.name: x for x in compare_profiles(a, b).symbols}
    assert lines["z"].bound
    assert lines["z"].change == pytest.approx(0.003)
    assert lines["y"].bound
    assert lines["y"].change == pytest.approx(0.0)  # below the other list's end anyway


def test_a_symbol_is_paired_with_one_whose_origin_is_not_told() -> None:
    a = Profile("a", {Symbol("memmove"): 1.0})
    b = Profile("b", {k("memmove"): 2.0})
    (line,) = compare_profiles(a, b).symbols
    assert (line.symbol, round(line.change, 4)) == (k("memmove"), 0.01)


def test_kernel_and_library_functions_of_one_name_stay_apart() -> None:
    a = Profile("a", {k("memmove"): 1.0, Symbol("memmove", "user"): 3.0})
    lines = {x.symbol.origin: x.change for x in compare_profiles(a, a).symbols}
    assert lines == {"kernel": 0.0, "user": 0.0}


def test_functions_that_the_commit_changes_are_marked_and_missed() -> None:
    found = compare_profiles(OLD, NEW, touched=["lock", "never_called"])
    assert [x.symbol.name for x in found.symbols if x.touched] == ["lock"]
    assert found.absent == ("never_called",)


def test_more_calls_and_longer_calls_are_told_apart() -> None:
    free = next(x for x in compare_profiles(*CALLS).calls if x.symbol.name == "free")
    assert free.change == 0
    assert free.each == (0.1, 0.15)


def test_few_samples_and_other_events_are_warned_of() -> None:
    few = Profile("a", {k("x"): 1.0}, samples=100, event="cycles", notes=("truncated",))
    other = Profile("b", {k("x"): 1.0}, event="instructions")
    assert compare_profiles(few, other).warnings == (
        "a: truncated",
        "a counts cycles, b counts instructions: shares of different things",
        "a: 100 samples: a symbol of 1% is known to 2.0 points only; record longer",
        "b: the number of samples is not told: chance cannot be judged",
    )
    many = Profile("c", {k("x"): 1.0}, samples=10_000)
    assert compare_profiles(many, many).warnings == (
        "chance is judged by each recording's sampling alone: what boots differ by is not in it",
    ), "it was of 'certain', a word that no text has"


@given(st.sets(SYMBOLS), st.sets(SYMBOLS))
def test_every_symbol_is_in_the_comparison_and_sides_swap(a: set[Symbol], b: set[Symbol]) -> None:
    one, other = (Profile(n, dict.fromkeys(s, 1.0)) for n, s in (("a", a), ("b", b)))
    there, back = compare_profiles(one, other).symbols, compare_profiles(other, one).symbols
    assert {x.symbol.name for x in there} == {s.name for s in a | b}
    assert {(x.a, x.b) for x in there} == {(x.b, x.a) for x in back}
