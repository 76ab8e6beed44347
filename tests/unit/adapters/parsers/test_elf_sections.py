"""The sizes of a kernel image, as size(1) counts them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from bisector.adapters.parsers.elf_sections import sections
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


SECTIONS = ((1, 0x6, 100), (1, 0x3, 50), (8, 0x3, 7), (0x6FFFFFF6, 0x2, 11), (1, 0x0, 999))


@pytest.mark.parametrize(("order", "said"), [("<", 1), (">", 2)])
def test_a_kernel_of_32_bits_in_either_byte_order(tmp_path: Path, order: str, said: int) -> None:
    head = bytearray(52)
    head[:6] = b"\x7fELF\x01" + bytes([said])
    struct.pack_into(f"{order}I", head, 32, 52)
    struct.pack_into(f"{order}HH", head, 46, 40, len(SECTIONS))
    body = b"".join(
        struct.pack(f"{order}IIIIIIIIII", 0, kind, flags, 0, 0, size, 0, 0, 0, 0)
        for kind, flags, size in SECTIONS
    )
    (tmp_path / "vmlinux").write_bytes(bytes(head) + body)
    assert sections(tmp_path / "vmlinux") == {"text": 111, "data": 50, "bss": 7}


def test_a_table_of_sections_that_lies_beyond_every_file(tmp_path: Path) -> None:
    image = bytearray(elf([(1, 0x6, 100)]))
    struct.pack_into("<Q", image, 40, (1 << 64) - 1)
    (tmp_path / "vmlinux").write_bytes(image)
    with pytest.raises(RequestError, match="cut off"):
        sections(tmp_path / "vmlinux")
