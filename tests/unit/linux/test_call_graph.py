"""Call chains of two profiles: trees of callers and callees, frames of a flame graph."""

from __future__ import annotations

import itertools

import pytest

from bisector.linux.call_graph import callees, callers, flame
from tests.support.samples import NEW, OLD, recorded


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


def test_a_function_that_is_in_no_chain_has_no_tree() -> None:
    assert callers(OLD, NEW, "absent", 0.0) == callees(OLD, NEW, "task", 0.0) == []


def test_narrow_frames_are_left_out_and_keep_their_place() -> None:
    frames, _ = flame(OLD, NEW, 0.07)
    assert [f.symbol.name for f in frames] == ["task", "idle", "sys_read", "vfs_read", "lock"]
    assert [f.left for f in frames if f.symbol.name == "lock"] == [pytest.approx(0.86 + 0.05)]
