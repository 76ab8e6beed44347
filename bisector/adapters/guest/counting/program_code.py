"""The code of one program, and its functions by address, out of its file.

Programs at fixed addresses, and those that lie elsewhere in each process: position-independent ones and
shared libraries, whose addresses count from where they begin (load_bases.py).
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator

from bisector.adapters.guest.counting.kernel_code import KernelCode, segments
from bisector.linux.profile import source_name

MAGIC = b"\x7fELF\x02\x01"
"""Of 64 bits, the lowest byte first: of all architectures that are counted."""
_FIXED, _MOVING = 2, 3
"""The types of files that are programs at fixed addresses (ET_EXEC), and at any (ET_DYN)."""

_SYMBOL_TABLE, _EXECUTED = 2, 4
"""A section's type (SHT_SYMTAB), and its flag (SHF_EXECINSTR)."""
_NO_TYPE, _FUNCTIONS = 0, (2, 10)
"""Types of symbols: of assembler's labels, and of functions (STT_FUNC, STT_GNU_IFUNC)."""
_HEADER_BYTES = 64

_Symbol = tuple[int, int, str]
"""Address, bytes (0: not known), name."""


class ProgramCode:
    """One program: its code, and its functions by address.

    moves: whether it lies elsewhere in each process; extent: its lowest address, and the one behind its last.
    """

    PAGE = 4096
    """Programs are moved by a multiple of it, on all architectures that are counted."""

    def __init__(self, name: str, file: bytes) -> None:
        """Read a file. Raises ValueError or struct.error: it is no program."""
        if not file.startswith(MAGIC) or len(file) < _HEADER_BYTES:
            raise ValueError("not an ELF file of 64 bits")
        (kind,) = struct.unpack_from("<H", file, 0x10)
        if kind not in (_FIXED, _MOVING):
            raise ValueError("not a program")
        self.name, self.moves = name, kind == _MOVING
        pieces = tuple(segments(file))
        self._code = KernelCode(pieces)
        self.extent = (
            min((address for address, _ in pieces), default=0),
            max((address + len(piece) for address, piece in pieces), default=0),
        )
        self._executed = tuple(segments(file, executed=True))
        found: dict[int, _Symbol] = {}
        for symbol in _symbols(file):
            found[symbol[0]] = min(found.get(symbol[0], symbol), symbol, key=_rank)
        self._addresses = sorted(found)
        self._symbols = [found[address] for address in self._addresses]
        self._entries = {address for address, (_, _, name) in found.items() if ".cold" not in name}

    def has(self, address: int, size: int, checksum: int) -> bool:
        """Return whether its code of so many bytes at an address has a CRC-32."""
        code = self._code.at(address, address + size)
        return len(code) == size and zlib.crc32(code) == checksum

    @property
    def pages(self) -> int:
        """How many pages of its code are compared for the places of one block."""
        return sum(len(piece) // self.PAGE + 1 for _, piece in self._executed)

    def places(self, offset: int, size: int, checksum: int) -> Iterator[int]:
        """Yield where its code of so many bytes has a CRC-32. offset: of the address in its page."""
        for address, piece in self._executed:
            code = memoryview(piece)
            for at in range((offset - address) % self.PAGE, len(code) - size + 1, self.PAGE):
                if zlib.crc32(code[at : at + size]) == checksum:
                    yield address + at

    def function(self, address: int) -> str:
        """Return the name of the function that an address lies in, as its source has it; '' for none."""
        at = bisect_right(self._addresses, address) - 1
        if at < 0:
            return ""
        begin, size, name = self._symbols[at]
        return "" if size and address >= begin + size else source_name(name)

    def is_entry(self, address: int) -> bool:
        """Return whether a function begins there; its part for unlikely cases (foo.cold) is none."""
        return address in self._entries


def _rank(symbol: _Symbol) -> tuple[bool, bool, str]:
    """Order the names of one address: functions with a size, and those for users, before the others."""
    _, size, name = symbol
    return not size, name.startswith("_"), name


def _symbols(file: bytes) -> Iterator[_Symbol]:
    """Yield the functions of an ELF file (the ELF specification, figures 1-8 to 1-16)."""
    (table,) = struct.unpack_from("<Q", file, 0x28)
    size, count = struct.unpack_from("<HH", file, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", file, table + size * at) for at in range(count)]
    executed = {at for at, section in enumerate(sections) if section[2] & _EXECUTED}
    for section in sections:
        _, kind, _, _, begin, length, link, *_ = section
        if kind != _SYMBOL_TABLE or link >= count:
            continue
        names = file[sections[link][4] : sections[link][4] + sections[link][5]]
        for name, info, _, place, address, bytes_ in struct.iter_unpack(
            "<IBBHQQ", file[begin : begin + length]
        ):
            is_label = info & 15 == _NO_TYPE and info >> 4 != 0  # local ones are inside of functions
            if place in executed and (is_label or info & 15 in _FUNCTIONS):
                yield address, bytes_, names[name : names.index(b"\0", name)].decode("utf-8", "replace")
