"""Folded stacks: what is one, what is added up, and how many samples there were."""

from __future__ import annotations

import pytest

from bisector.adapters.parsers.profiles.folded_stacks import looks_like, read
from bisector.errors import RequestError
from bisector.linux.profile import Symbol


def test_stacks_that_come_twice_are_added_up_and_comments_left_out() -> None:
    found = read("# by a tool\na;main;run_[k] 2\n\na;main;run_[k] 3\na;main 1\n", "x")
    assert (found.own, found.samples) == ({Symbol("run", "kernel"): 5, Symbol("main"): 1}, 6)
    assert found.whole[Symbol("main")] == 6


def test_annotations_of_flame_graph_tools_are_no_part_of_names() -> None:
    """An inlined function was another one than the same in a call of its own: 'list_del_[i]'."""
    stacks = (
        "java;Main.run_[j];walk_[i];sys_read_[k];vfs_read_[k];list_del.isra.0_[i];fetch_[i] 2",
        "java;Main.run_[j];sys_read_[k];list_del_[k] 3",
        "java;wake_[w] 1",
    )
    found = read("\n".join(stacks), "x")
    assert found.own == {Symbol("fetch", "kernel"): 2, Symbol("list_del", "kernel"): 3, Symbol("wake"): 1}
    assert found.whole[Symbol("list_del", "kernel")] == 5
    assert (found.whole[Symbol("Main.run")], found.whole[Symbol("walk")]) == (5, 2)


def test_weights_that_are_no_whole_numbers_say_nothing_of_samples() -> None:
    found = read("a;main 0.5\na;main 2\n", "x")
    assert (found.total, found.samples) == (2.5, 0)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("a;main 3\n", True),
        ("# by a tool\n\na;my task;main 3\n", True),
        ("a;main 3\nhello\n", False),
        ("# a\n", False),
        (";main 3\n", False),
        ("main; 3\n", False),
        ("a;main x\n", False),
    ],
)
def test_every_line_has_a_task_a_function_and_a_count(text: str, fits: bool) -> None:
    assert looks_like(text) == fits


def test_what_is_no_stack_is_named_with_its_line() -> None:
    with pytest.raises(RequestError, match="x:2: 'hello' is not a folded stack"):
        read("a;main 3\nhello\n", "x")
    with pytest.raises(RequestError, match="x:1: '-3' is not a count"):
        read("a;main -3\n", "x")
    with pytest.raises(RequestError, match="no stack was seen more than no times"):
        read("a;main 0\n", "x")
