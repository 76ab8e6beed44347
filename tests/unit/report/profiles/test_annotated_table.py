"""Annotated functions as text and for machines."""

from __future__ import annotations

from bisector.linux.annotated_code import AnnotatedFunction, CodePart, Instruction
from bisector.report.profiles import annotated_table

PART = CodePart(
    (
        Instruction(100, "mov %rdi,%rax", 20003.0),
        Instruction(103, "je pipe_write+0x9", 20003.0),
        Instruction(105, "ud2"),
        Instruction(107, "nop"),
        Instruction(109, "ret", 7.0),
    )
)
BOTH = [
    AnnotatedFunction("v6.1", "pipe_write", True, (PART,), own=40013.0, odd=1, left_out=1200),
    AnnotatedFunction("v6.2", "pipe_write", False, ()),
    AnnotatedFunction("v6.3", "pipe_write", True, ()),
]
TEXT = """\
pipe_write in v6.1: 40,013 instructions a run
---------------------------------------------

EXECUTIONS  AT    INSTRUCTION
20,003      +0x0  mov %rdi,%rax
            +0x3  je pipe_write+0x9
            +0x5  ... 2 not executed
     7      +0x9  ret

The executions of all lines add up to 40,013. The code is as it was linked:
where the kernel changes it at boot (alternatives, jump labels, tracing)
another instruction was executed. Blocks that begin within an instruction, at
such places: 1. 1,200 blocks of this boot with the fewest instructions were
not kept.

pipe_write in v6.2: this kernel has no such function
----------------------------------------------------

pipe_write in v6.3: not executed in a run
-----------------------------------------
"""


def test_a_count_stands_where_a_block_begins_and_what_was_not_executed_is_one_line() -> None:
    assert annotated_table.render(BOTH) == TEXT


def test_machines_get_every_instruction() -> None:
    found = annotated_table.as_json(BOTH[0])
    (part,) = found["parts"]
    assert part[2] == {"address": 105, "text": "ud2", "executions": 0.0}
    assert (found["profile"], found["instructions"], found["odd_blocks"]) == ("v6.1", 40013.0, 1)
