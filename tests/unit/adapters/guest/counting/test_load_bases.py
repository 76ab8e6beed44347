"""A program that moves lies where several long blocks agree that it does, and nowhere else."""

from __future__ import annotations

import random
import zlib

import pytest

from bisector.adapters.guest.counting import load_bases
from bisector.adapters.guest.counting.load_bases import Block, LoadBases
from bisector.adapters.guest.counting.program_code import ProgramCode
from tests.support.user_program.small_elf import elf

CODE = random.Random(1).randbytes(3 * 4096)
OTHER = random.Random(2).randbytes(3 * 4096)
PROGRAM = ProgramCode("p", elf(0x1000, CODE, kind=3))
ONE, TWO = 0x5555_5555_4000, 0x7F00_1234_5000


def block(at: int, size: int = 16, base: int = ONE, code: bytes = CODE) -> Block:
    return base + 0x1000 + at, size, zlib.crc32(code[at : at + size])


def found(*blocks: Block) -> list[int]:
    return sorted(base for _, base in LoadBases([PROGRAM]).found(blocks))


def test_each_process_has_its_own_beginning() -> None:
    places = (0, 40, 5000)
    first, second = [block(at) for at in places], [block(at, 20, TWO) for at in places]
    assert found(*first) == [ONE]
    assert found(*second, *first) == [ONE, TWO]
    search = LoadBases([PROGRAM])
    for base in (ONE, TWO, ONE):  # the next runs of a boot
        assert search.found([block(at, base=base) for at in places]) == [(PROGRAM, base)]


@pytest.mark.parametrize(
    "blocks",
    [
        [block(0), block(40)],
        [block(0), block(40), block(80, 15)],  # too short to say anything
        [block(0, 40), block(10, 30), block(80)],  # a jump into a block: its end is a block, too
        [block(0), block(40), block(80, base=TWO)],
        [(address + 8, *rest) for address, *rest in (block(0), block(40), block(80))],  # moved by no page
        [block(at, code=OTHER) for at in (0, 40, 80)],
    ],
)
def test_too_little_tells_nothing(blocks: list[Block]) -> None:
    assert found(*blocks) == []


def test_where_others_code_lies_a_program_that_shares_some_does_not() -> None:
    shared = [block(at) for at in (0, 40, 80)]
    assert found(*shared, *(block(at, code=OTHER) for at in (200, 300))) == [ONE]
    assert found(*shared, *(block(at, code=OTHER) for at in (200, 300, 400))) == []
    assert found(*shared, *(block(20_000 + at, code=OTHER * 3) for at in (200, 300, 400))) == [ONE]


def test_what_another_program_has_does_not_speak_against_one() -> None:
    other = ProgramCode("q", elf(0x1000, OTHER, kind=3))
    places = [block(at) for at in (0, 40, 80)] + [block(at, code=OTHER) for at in (200, 300, 400, 500)]
    assert {(one.name, base) for one, base in LoadBases([PROGRAM, other]).found(places)} == {
        ("p", ONE),
        ("q", ONE),
    }


def test_repeated_code_says_nothing() -> None:
    repeating = ProgramCode("r", elf(0x1000, CODE[:4096] * 5, kind=3))
    assert LoadBases([repeating]).found([block(at) for at in (0, 40, 80)]) == []


def test_no_more_is_compared_than_a_boot_can_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_bases, "_MOST_COMPARED", 4 * load_bases._LEAST_COMPARED)
    noise = [block(at, code=OTHER) for at in (1000, 1100)]
    assert found(*noise, *(block(at, 20) for at in (0, 40, 80))) == [ONE]  # the longest first
    assert found(*noise, *(block(at, 15 + at) for at in (1, 2)), block(80)) == []
    search = LoadBases([PROGRAM])
    assert search.found([*noise, *(block(at, 20) for at in (0, 40, 80))]) != []
    assert search.found([block(at, 20, TWO) for at in (0, 40, 80)]) == [
        (PROGRAM, TWO)
    ]  # what is known is free
    assert search.found([block(at, 21, TWO) for at in (0, 40, 80)]) == []
