"""What a kernel image says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.build.bzimage import Identity, identity
from bisector.errors import InfrastructureError


def test_an_image_says_who_it_is(tmp_path: Path) -> None:
    image = tmp_path / "bzImage"
    head = bytearray(0x1000)
    head[0x202:0x206] = b"HdrS"
    head[0x20E:0x210] = (0x400).to_bytes(2, "little")
    text = b"2.6.18-rc1 (me@here (really)) #1 SMP Thu Jan 1 00:00:00 UTC 2009\0"
    head[0x600 : 0x600 + len(text)] = text
    image.write_bytes(head)
    assert identity(image) == Identity("2.6.18-rc1", "#1 SMP Thu Jan 1 00:00:00 UTC 2009")
    image.write_bytes(b"\x7fELF" + bytes(0x1000))
    assert identity(image) is None


def test_an_image_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="cannot read the kernel"):
        identity(tmp_path / "none")
