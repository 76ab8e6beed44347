"""Each instruction has the executions of all blocks that it lies in."""

from __future__ import annotations

from bisector.linux.annotated_code import annotate

CODE = [(100, "mov"), (103, "add"), (105, "jne"), (107, "ret")]


def counts(*blocks: tuple[int, int, float]) -> tuple[list[float], int]:
    part, odd = annotate(CODE, blocks)
    assert [(one.address, one.text) for one in part.instructions] == CODE
    return [one.executions for one in part.instructions], odd


def test_blocks_that_overlap_add_up() -> None:
    assert counts((100, 7, 10), (103, 4, 5)) == ([10, 15, 15, 0], 0)


def test_a_block_may_come_from_before_and_go_beyond() -> None:
    assert counts((90, 13, 2), (107, 50, 3)) == ([2, 0, 0, 3], 0)


def test_a_block_that_begins_within_an_instruction_is_told() -> None:
    assert counts((101, 4, 2)) == ([0, 2, 0, 0], 1)
    assert annotate([], [(1, 2, 3)])[1] == 0
