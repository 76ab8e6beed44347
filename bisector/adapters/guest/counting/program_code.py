"""Which program, and which function of it, a block of user code is of.

Processes have the same addresses, so an address alone says nothing: a block is a program's if the program's
file has that very code there. That can be told of programs that are linked to fixed addresses, as static ones
are; not of shared libraries and position-independent programs, which lie elsewhere in each process.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

from bisector.adapters.guest.counting.kernel_code import KernelCode, segments
from bisector.adapters.system.files import os_errors_reported
from bisector.linux.profile import source_name
from bisector.schemas.counted_functions import IN_PROGRAM, MAX_NAME

_MAGIC = b"\x7fELF\x02\x01"
"""Of 64 bits, the lowest byte first: of all architectures that are counted."""
_FIXED = 2
"""The type of a program at fixed addresses (ET_EXEC)."""
_MAX_BYTES = 64 << 20
"""Of a program's file; larger ones are not looked into."""

_SYMBOL_TABLE, _EXECUTED = 2, 4
"""A section's type (SHT_SYMTAB), and its flag (SHF_EXECINSTR)."""
_NO_TYPE, _FUNCTIONS = 0, (2, 10)
"""Types of symbols: of assembler's labels, and of functions (STT_FUNC, STT_GNU_IFUNC)."""
_HEADER_BYTES = 64

_Symbol = tuple[int, int, str]
"""Address, bytes (0: not known), name."""


class ProgramCode:
    """One program: its code, and its functions by address."""

    def __init__(self, name: str, file: bytes) -> None:
        """Read a file. Raises ValueError or struct.error: it is no program at fixed addresses."""
        if not file.startswith(_MAGIC) or len(file) < _HEADER_BYTES:
            raise ValueError("not an ELF file of 64 bits")
        (kind,) = struct.unpack_from("<H", file, 0x10)
        if kind != _FIXED:
            raise ValueError("not linked to fixed addresses")
        self.name = name
        self._code = KernelCode(tuple(segments(file)))
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


class Programs:
    """The programs of one workload."""

    def __init__(self, some: Sequence[ProgramCode] = ()) -> None:
        """Take programs, each once."""
        self._some = tuple(some)
        self._known: dict[tuple[int, int, int], tuple[str, bool]] = {}

    def place(self, address: int, size: int, checksum: int) -> tuple[str, bool]:
        """Return 'program:function' of a block, and whether that begins there; ('', False) where not known.

        Code that several programs have at the same address, such as how C programs start, could be of each.
        """
        key = address, size, checksum
        if key not in self._known:
            having = [one for one in self._some if one.has(*key)]
            self._known[key] = ("", False)
            if len(having) == 1:
                name = f"{having[0].name}{IN_PROGRAM}{having[0].function(address) or _UNNAMED}"
                self._known[key] = (name[:MAX_NAME], having[0].is_entry(address))
        return self._known[key]


_UNNAMED = "[no symbol]"


def programs_in(folder: Path) -> Programs:
    """Return the programs in a folder, by their paths in it; copies count once.

    Raises InfrastructureError.
    """
    found: dict[bytes, ProgramCode] = {}
    with os_errors_reported(f"cannot read the programs in {folder}"):
        for path in sorted(folder.rglob("*")):
            if not path.is_file() or path.stat().st_size > _MAX_BYTES or not _is_elf(path):
                continue
            file = path.read_bytes()
            try:
                found.setdefault(file, ProgramCode(str(path.relative_to(folder)), file))
            except (ValueError, struct.error):
                continue
    return Programs(tuple(found.values()))


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


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
