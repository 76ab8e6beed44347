"""A program's functions by address; where its code may have come from."""

from __future__ import annotations

import struct
import zlib

import pytest

from bisector.adapters.guest.counting.program_code import ProgramCode
from tests.support.user_program.small_elf import FUNCTION, elf

BASE = 0x401000
SYMBOLS = [("__write", BASE + 16, 8, FUNCTION), ("helper.isra.0", BASE + 24, 8, FUNCTION)]


def test_behind_a_functions_last_byte_nothing_is_its() -> None:
    program = ProgramCode("p", elf(BASE, bytes(32), SYMBOLS))
    assert program.function(BASE + 31) == "helper"
    assert program.function(BASE + 32) == ""
    assert program.function(BASE - 1) == ""
    assert not program.is_entry(BASE + 4)


def test_only_programs_are_read() -> None:
    assert not ProgramCode("p", elf(BASE, bytes(32))).moves
    assert ProgramCode("p", elf(0, bytes(32), kind=3)).moves
    for file in (b"#!/bin/sh", elf(BASE, bytes(32), kind=1), elf(BASE, bytes(32))[:100]):
        with pytest.raises((ValueError, struct.error)):
            ProgramCode("p", file)


def test_a_block_has_the_same_place_in_each_page() -> None:
    page = bytes(range(256)) * 16
    program = ProgramCode("p", elf(0x100, page * 3, kind=3))
    checksum = zlib.crc32(page[0x20:0x60])
    assert program.extent == (0x100, 0x100 + 3 * 4096)
    assert list(program.places(0x120, 0x40, checksum)) == [0x120, 0x1120, 0x2120]
    assert list(program.places(0x20, 0x40, checksum)) == [0x1020, 0x2020, 0x3020]
    assert list(program.places(0x121, 0x40, checksum)) == []
    assert list(program.places(0x120, 4 * 4096, checksum)) == []
