"""The text of a file, unpacked if its name says so; and the sections of a kernel image."""

from __future__ import annotations

import gzip
import lzma
import struct
import zlib
from pathlib import Path

from bisector.adapters.parsers.malformed import wrong

ELF = b"\x7fELF"
_ALLOC, _WRITE, _NOBITS = 0x2, 0x1, 8


def text_of(path: Path) -> str:
    """Return a file's text. Raises RequestError: it cannot be read, or is no text."""
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
        elif path.suffix == ".xz":
            data = lzma.decompress(data)
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise wrong(str(path), "this is no text", "text or JSON, or a kernel's vmlinux") from error
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise wrong(str(path), "cannot be read", details=str(error)) from error


def is_elf(path: Path) -> bool:
    """Return whether the file begins as an ELF file does."""
    try:
        with path.open("rb") as file:
            return file.read(4) == ELF
    except OSError as error:
        raise wrong(str(path), "cannot be read", details=str(error)) from error


def sections(path: Path) -> dict[str, int]:
    """Return text, data and bss of an ELF file in bytes, as `size` counts them (Berkeley).

    text: loaded and not writable; data: loaded and writable; bss: loaded and without bits in the file.
    """
    data = path.read_bytes()
    wide, order = data[4] == 2, "<" if data[5] == 1 else ">"
    try:
        if wide:
            (start,) = struct.unpack_from(order + "Q", data, 40)
            size, count = struct.unpack_from(order + "HH", data, 58)
        else:
            (start,) = struct.unpack_from(order + "I", data, 32)
            size, count = struct.unpack_from(order + "HH", data, 46)
        found = {"text": 0, "data": 0, "bss": 0}
        for i in range(count):
            at = start + i * size
            if wide:
                kind, flags, _, _, length = struct.unpack_from(order + "IQQQQ", data, at + 4)
            else:
                kind, flags, _, _, length = struct.unpack_from(order + "IIIII", data, at + 4)
            if flags & _ALLOC:
                found["bss" if kind == _NOBITS else "data" if flags & _WRITE else "text"] += length
    except struct.error as error:
        raise wrong(str(path), "this ELF file is cut off", "build it again") from error
    return found
