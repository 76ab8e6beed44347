"""The smallest ELF programs of 64 bits: one piece of code, one segment, and a table of symbols."""

from __future__ import annotations

import struct
from collections.abc import Sequence

FUNCTION, LABEL, LOCAL_LABEL = 0x12, 0x10, 0x00
"""Kinds of symbols (st_info): a function and a label that all see, and a label of one file."""


def elf(
    address: int, code: bytes, symbols: Sequence[tuple[str, int, int, int]] = (), *, kind: int = 2
) -> bytes:
    """Return a program with its code at an address. symbols: (name, address, bytes, kind); kind: its type."""
    names, table = b"\0", struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)
    for name, place, size, info in symbols:
        table += struct.pack("<IBBHQQ", len(names), info, 0, 1, place, size)
        names += name.encode() + b"\0"
    at = 64 + 56
    sections = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (0, 1, 6, address, at, len(code), 0, 0, 1, 0),
        (0, 2, 0, 0, at + len(code), len(table), 3, 1, 8, 24),
        (0, 3, 0, 0, at + len(code) + len(table), len(names), 0, 0, 1, 0),
    ]
    whole = at + len(code) + len(table) + len(names)
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", kind, 62, 1, address, 64, whole, 0, 64, 56, 1, 64, len(sections), 3)
    segment = struct.pack("<IIQQQQQQ", 1, 5, at, address, address, len(code), len(code), 4096)
    tables = b"".join(struct.pack("<IIQQQQIIQQ", *section) for section in sections)
    return head + segment + code + table + names + tables
