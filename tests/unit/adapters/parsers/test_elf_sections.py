"""The sizes of a kernel image, as size(1) counts them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from bisector.adapters.parsers.results import read
from bisector.errors import RequestError
from tests.support.result_samples import only


def elf(sections: list[tuple[int, int, int]]) -> bytes:
    """Return a 64-bit ELF file with sections of (type, flags, size)."""
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", head, 40, 64)
    struct.pack_into("<HH", head, 58, 64, len(sections))
    body = b"".join(struct.pack("<IIQQQQIIQQ", 0, t, f, 0, 0, n, 0, 0, 0, 0) for t, f, n in sections)
    return bytes(head) + body


def test_a_vmlinux_is_measured_as_size_does(tmp_path: Path) -> None:
    image = elf([(1, 0x6, 100), (1, 0x2, 11), (1, 0x3, 50), (8, 0x3, 7), (1, 0x0, 999)])
    (tmp_path / "vmlinux").write_bytes(image)
    assert dict(only(str(tmp_path / "vmlinux")).sizes) == {"text": 111, "data": 50, "bss": 7}
    (tmp_path / "vmlinux").write_bytes(image[:150])
    with pytest.raises(RequestError, match="cut off"):
        read(str(tmp_path / "vmlinux"))
