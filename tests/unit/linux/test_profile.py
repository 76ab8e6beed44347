"""Two profiles side by side: pairing of symbols, points, chance, bounds, trees and flames."""

from __future__ import annotations

import itertools
import random
import re
from xml.etree import ElementTree

import pytest

from bisector.linux.call_graph import callees, callers, flame
from bisector.linux.profile import Profile, Symbol, compare_profiles, folded, source_name
from bisector.report.profiles import flame_graph as svg
from bisector.report.profiles import profile_table


def k(name: str) -> Symbol:
    return Symbol(name, "kernel")


def recorded(name: str, stacks: dict[str, float]) -> Profile:
    found = {(Symbol("task", "task"), *(k(f) for f in text.split())): w for text, w in stacks.items()}
    own, whole = folded(found)
    total = sum(found.values())
    return Profile(name, own, whole, found, total, round(total))


OLD = recorded("old", {"sys_read vfs_read copy": 500, "sys_read vfs_read lock": 300, "idle": 9200})
NEW = recorded("new", {"sys_read vfs_read copy": 500, "sys_read vfs_read lock": 900, "idle": 8600})


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
    text = " ".join(profile_table.render(found, 10).split())
    assert "*[k] lock" in text
    assert "* Changed by the commit: lock +6.00 points." in text
    assert "in neither profile (inlined, or not run): never_called." in text


def test_more_calls_and_longer_calls_are_told_apart() -> None:
    a = Profile("a", calls={k("alloc"): 1000, k("free"): 500}, spent={k("alloc"): 100.0, k("free"): 50.0})
    b = Profile("b", calls={k("alloc"): 2000, k("free"): 500}, spent={k("alloc"): 200.0, k("free"): 75.0})
    text = " ".join(profile_table.render(compare_profiles(a, b), 10).split())
    assert "b calls alloc 100.0% more often" in text
    free = next(x for x in compare_profiles(a, b).calls if x.symbol.name == "free")
    assert free.change == 0
    assert free.each == (0.1, 0.15)


def test_trees_of_callers_and_callees() -> None:
    up = [(x.depth, x.symbol.name, x.a, x.b) for x in callers(OLD, NEW, "lock", 0.001)]
    assert up == [
        (0, "lock", 0.03, 0.09),
        (1, "vfs_read", 0.03, 0.09),
        (2, "sys_read", 0.03, 0.09),
        (3, "task", 0.03, 0.09),
    ]
    down = [(x.depth, x.symbol.name) for x in callees(OLD, NEW, "vfs_read", 0.04)]
    assert down == [(0, "vfs_read"), (1, "lock"), (1, "copy")]


def test_a_flame_graph_is_as_wide_as_the_second_profile() -> None:
    frames, gone = flame(OLD, NEW, 0.0)
    assert gone == 0
    (task,) = [f for f in frames if f.depth == 0]
    assert task.left == 0.0
    assert task.width == pytest.approx(1.0)
    for depth in (1, 2):
        row = [f for f in frames if f.depth == depth]
        ends = [(f.left, f.left + f.width) for f in row]
        assert all(right <= left + 1e-9 for (_, right), (left, _) in itertools.pairwise(ends))
    _, gone = flame(OLD, recorded("new", {"idle": 1}), 0.0)
    assert gone == pytest.approx(0.08)


def test_the_svg_is_well_formed_red_where_more_and_blue_where_less() -> None:
    odd = recorded("<new> & co", {"sys_read vfs_read lock": 900, "operator<< idle": 100})
    text = svg.render(OLD, odd, {"lock"})
    boxes = {}
    for group in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}g"):
        title, box = group[0].text or "", group[1]
        boxes[title.split(":")[0]] = box
    assert re.match(r"#ff6e6e", boxes["[k] lock"].get("fill", ""))
    assert boxes["[k] lock"].get("stroke") == "#000000"
    assert boxes["[k] operator<<"].get("stroke") == "#ffffff"
    blue = svg.render(NEW, OLD)
    assert 'fill="#6e6eff"' in blue
