"""Sizes of a kernel image's sections, from its ELF headers."""

from __future__ import annotations

import struct
from pathlib import Path

from bisector.adapters.parsers.input_text import first_bytes, malformed

_MAGIC = b"\x7fELF"
_SHF_WRITE, _SHF_ALLOC, _SHT_NOBITS = 0x1, 0x2, 8


def is_elf(path: Path) -> bool:
    """Return whether the file begins as an ELF file does."""
    return first_bytes(path, len(_MAGIC)) == _MAGIC


def sections(path: Path) -> dict[str, int]:
    """Return text, data and bss of an ELF file in bytes, as `size` counts them (Berkeley).

    text: loaded and not writable; data: loaded and writable; bss: loaded and without bits in the file.
    """
    data = path.read_bytes()
    try:
        wide, order = data[4] == 2, "<" if data[5] == 1 else ">"
        (start,) = struct.unpack_from(order + ("Q" if wide else "I"), data, 40 if wide else 32)
        size, count = struct.unpack_from(order + "HH", data, 58 if wide else 46)
        section = order + ("IQQQQ" if wide else "IIIII")
        found = {"text": 0, "data": 0, "bss": 0}
        for i in range(count):
            kind, flags, _, _, length = struct.unpack_from(section, data, start + i * size + 4)
            if flags & _SHF_ALLOC:
                found["bss" if kind == _SHT_NOBITS else "data" if flags & _SHF_WRITE else "text"] += length
    except (struct.error, IndexError, OverflowError) as error:  # an offset beyond every file, too
        raise malformed(str(path), "this ELF file is cut off", "build it again") from error
    return found
