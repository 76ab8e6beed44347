"""Archives in cpio's "newc" format, as the kernel reads an initramfs.

Documentation/early-userspace/buffer-format.txt. Uncompressed: every kernel since 2.6.13 takes that, whatever
decompressors it was built with.
"""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """One entry of an archive. mode: with the bits of its type; data: of a file; device: major and minor."""

    name: str
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


def cpio(entries: Sequence[ArchiveEntry]) -> bytes:
    """Return a newc archive. Owners are root, times zero: the same entries give the same bytes."""
    out = bytearray()
    for number, entry in enumerate((*entries, ArchiveEntry("TRAILER!!!", 0)), start=1):
        name = entry.name.encode() + b"\0"
        links = 2 if stat.S_ISDIR(entry.mode) else 1
        fields = (
            *(number, entry.mode, 0, 0, links, 0, len(entry.data)),
            *(0, 0, *entry.device, len(name), 0),
        )
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + name
        out += b"\0" * (-len(out) % 4)
        out += entry.data
        out += b"\0" * (-len(out) % 4)
    return bytes(out)


def folder(name: str) -> ArchiveEntry:
    """Return the entry of a folder."""
    return ArchiveEntry(name, stat.S_IFDIR | 0o755)


def file(name: str, data: bytes, *, executable: bool = False) -> ArchiveEntry:
    """Return the entry of a file."""
    return ArchiveEntry(name, stat.S_IFREG | (0o755 if executable else 0o644), data)
