"""A function's instructions with how often each was executed: from counted blocks, without sampling."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction as it was linked. executions: in a run."""

    address: int
    text: str
    executions: float = 0.0


@dataclass(frozen=True, slots=True)
class CodePart:
    """A stretch of code: a compiler may make several of one function, and several functions have one name."""

    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class AnnotatedFunction:
    """A function of one profile.

    known: the kernel has it. parts: those that were executed. own: instructions of a run, as counted. odd:
    blocks that begin within an instruction, as the kernel had changed its code by then. left_out: blocks of
    the boot that were not kept.
    """

    profile: str
    name: str
    known: bool
    parts: tuple[CodePart, ...]
    own: float = 0.0
    odd: int = 0
    left_out: int = 0


def annotate(
    code: Sequence[tuple[int, str]], blocks: Sequence[tuple[int, int, float]]
) -> tuple[CodePart, int]:
    """Return instructions with their executions, and how many blocks begin within one.

    code: (address, text), by rising addresses. blocks: (address, bytes, executions). An instruction was
    executed as often as all blocks that it lies in.
    """
    addresses = [address for address, _ in code]
    executions = [0.0] * len(code)
    odd = 0
    for begin, size, times in blocks:
        first = bisect_left(addresses, begin)
        if addresses and addresses[0] < begin <= addresses[-1]:
            odd += addresses[first] != begin
        for at in range(first, bisect_left(addresses, begin + size)):
            executions[at] += times
    lines = zip(code, executions, strict=True)
    return CodePart(tuple(Instruction(address, text, times) for (address, text), times in lines)), odd
