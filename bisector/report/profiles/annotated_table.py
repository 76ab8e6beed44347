"""Functions instruction by instruction, with how often each was executed in a run."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from bisector.linux.annotated_code import AnnotatedFunction, CodePart, Instruction
from bisector.report import phrases
from bisector.report.columns import align


def render(functions: Sequence[AnnotatedFunction]) -> str:
    """Return the text, each function below the other."""
    out: list[str] = []
    for one in functions:
        out += phrases.heading(f"{one.name} in {one.profile}: {_amount(one)}")
        for part in one.parts:
            out += ["", *align(("EXECUTIONS", "AT", "INSTRUCTION"), _rows(part))]
        out += ["", *phrases.wrap(_notes(one), "")] if one.parts else []
    return phrases.page(out[1:])


def _amount(one: AnnotatedFunction) -> str:
    if not one.known:
        return "this kernel has no such function"
    return f"{one.own:,.0f} instructions a run" if one.parts else "not executed in a run"


def _rows(part: CodePart) -> list[tuple[str, str, str]]:
    """Return the lines of a part; what was never executed is one line."""
    begin = part.instructions[0].address
    counts = [f"{one.executions:,.0f}" for one in part.instructions]
    width = max(map(len, counts))
    rows = []
    for times, stretch in itertools.groupby(part.instructions, key=lambda one: one.executions):
        lines = list(stretch)
        rows += _executed(lines, begin, width) if times else [("", _offset(lines[0], begin), _skipped(lines))]
    return rows


def _executed(lines: Iterable[Instruction], begin: int, width: int) -> list[tuple[str, str, str]]:
    """Return the lines of one block; its count stands at the first one."""
    rows = [("", _offset(one, begin), one.text) for one in lines]
    first = f"{next(iter(lines)).executions:,.0f}".rjust(width)
    return [(first, *rows[0][1:]), *rows[1:]]


def _skipped(lines: Sequence[Instruction]) -> str:
    return f"... {len(lines)} not executed"


def _offset(one: Instruction, begin: int) -> str:
    return f"+{one.address - begin:#x}"


def _notes(one: AnnotatedFunction) -> str:
    executed = sum(line.executions for part in one.parts for line in part.instructions)
    text = (
        f"The executions of all lines add up to {executed:,.0f}. The code is as it was linked: where the "
        "kernel changes it at boot (alternatives, jump labels, tracing) another instruction was executed."
    )
    if one.odd:
        text += f" Blocks that begin within an instruction, at such places: {one.odd}."
    if one.left_out:
        text += f" {one.left_out:,} blocks of this boot with the fewest instructions were not kept."
    return text


def as_json(one: AnnotatedFunction) -> dict[str, Any]:
    """Return the same for machines."""
    return {
        "profile": one.profile,
        "name": one.name,
        "known": one.known,
        "instructions": one.own,
        "parts": [
            [{"address": x.address, "text": x.text, "executions": x.executions} for x in part.instructions]
            for part in one.parts
        ],
        "odd_blocks": one.odd,
        "blocks_left_out": one.left_out,
    }
