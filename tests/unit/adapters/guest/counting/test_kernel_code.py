"""The code of a kernel out of each form of image, by its addresses."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from bisector.adapters.guest.counting.kernel_code import kernel_code
from bisector.errors import RequestError

BASE = 0xFFFFFFFF81000000
FLAT = bytes(range(200))


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return an ELF file that has FLAT at BASE."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    folder = tmp_path_factory.mktemp("linked")
    source, out = folder / "code.S", folder / "code"
    source.write_text(f".text\n.byte {','.join(map(str, FLAT))}\n.data\n.quad 7\n")
    words = ["-nostdlib", "-static", "-no-pie", f"-Wl,-Ttext={BASE:#x}", "-Wl,--build-id=none", "-Wl,-e0"]
    subprocess.run(["gcc", *words, "-o", out, source], check=True)
    return out.read_bytes()


def image_of_x86(payload: bytes, version: int = 0x20F) -> bytes:
    """Return an image with two sectors of setup, and 16 bytes of code that unpacks before the payload."""
    setup = bytearray(3 * 512)
    setup[0x1F1] = 2
    setup[0x202:0x208] = b"HdrS" + struct.pack("<H", version)
    if version >= 0x208:
        setup[0x248:0x250] = struct.pack("<II", 16, len(payload))
    return bytes(setup) + b"\x90" * 16 + payload + b"what follows"


def code(folder: Path, image: bytes) -> bytes:
    (folder / "image").write_bytes(image)
    return kernel_code(folder / "image", BASE).at(BASE + 3, BASE + 9)


@pytest.mark.parametrize(
    "pack",
    [gzip.compress, lzma.compress, bz2.compress, lambda data: lzma.compress(data, lzma.FORMAT_ALONE)],
    ids=["gzip", "xz", "bzip2", "lzma"],
)
def test_the_linked_kernel_is_unpacked(tmp_path: Path, linked: bytes, pack: object) -> None:
    assert callable(pack)
    assert code(tmp_path, image_of_x86(pack(linked))) == FLAT[3:9]


def test_an_image_before_2_6_26_packs_what_is_loaded(tmp_path: Path) -> None:
    assert code(tmp_path, image_of_x86(gzip.compress(FLAT), version=0x204)) == FLAT[3:9]


def test_other_forms(tmp_path: Path, linked: bytes) -> None:
    assert code(tmp_path, linked) == FLAT[3:9]
    arm = FLAT[:0x38] + b"ARM\x64" + FLAT[0x3C:]
    assert code(tmp_path, arm) == FLAT[3:9]
    assert code(tmp_path, gzip.compress(arm)) == FLAT[3:9]


def test_what_the_image_does_not_have_is_empty(tmp_path: Path, linked: bytes) -> None:
    (tmp_path / "image").write_bytes(linked)
    found = kernel_code(tmp_path / "image", BASE)
    assert found.at(BASE + len(FLAT) + 0x200000, BASE + len(FLAT) + 0x200009) == b""
    assert found.at(BASE - 0x100000, BASE) == b""


@pytest.mark.parametrize(
    ("image", "why"),
    [
        (image_of_x86(b"\x28\xb5\x2f\xfd" + b"x" * 99), "packed with zstd, which is not unpacked here"),
        (image_of_x86(b"", version=0x204), "has no packed kernel"),
        (b"nonsense" * 100, "no kernel of x86_64 or arm64"),
        (b"", "no kernel"),
        (image_of_x86(b"\x1f\x8b\x08" + b"\xff" * 99), "cannot be read"),
        (image_of_x86(gzip.compress(b"\x7fELF")), "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, image: bytes, why: str) -> None:
    with pytest.raises(RequestError, match=why):
        code(tmp_path, image)
    with pytest.raises(RequestError, match="No such file"):
        kernel_code(tmp_path / "absent", BASE)
