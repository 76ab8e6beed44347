"""The code of a kernel as it was linked, out of the image that boots: by virtual addresses.

An image of x86 packs the linked kernel (Documentation/x86/boot.rst: payload_offset, since protocol 2.08),
since 2.6.26 as an ELF file, before as what is loaded; arm64's is what is loaded. The linked kernel itself is
read, too.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bisector.errors import RequestError

_MAX_BYTES = 1 << 30
"""Most bytes of an unpacked kernel; one with all drivers built in has 100 MB."""

_ELF, _SETUP, _ARM64 = b"\x7fELF", b"HdrS", b"ARM\x64"
_PAYLOAD_PROTOCOL = 0x208


def _gunzip(packed: bytes) -> bytes:
    return zlib.decompressobj(wbits=31).decompress(packed, _MAX_BYTES)


def _unlzma(packed: bytes) -> bytes:
    return lzma.LZMADecompressor().decompress(packed, _MAX_BYTES)


def _bunzip(packed: bytes) -> bytes:
    return bz2.BZ2Decompressor().decompress(packed, _MAX_BYTES)


_PACKERS: tuple[tuple[bytes, str, Callable[[bytes], bytes] | None], ...] = (
    (b"\x1f\x8b\x08", "gzip", _gunzip),
    (b"\xfd7zXZ\x00", "xz", _unlzma),
    (b"BZh", "bzip2", _bunzip),
    (b"\x5d\x00\x00", "lzma", _unlzma),
    (b"\x28\xb5\x2f\xfd", "zstd", None),
    (b"\x02\x21\x4c\x18", "lz4", None),
    (b"\x89LZO\x00\r\n\x1a\n", "lzo", None),
)
"""How each form begins, and what unpacks it; Python's own library has the first four."""


@dataclass(frozen=True, slots=True)
class KernelCode:
    """Pieces of loaded code: (virtual address, bytes)."""

    pieces: tuple[tuple[int, bytes], ...]

    def at(self, begin: int, end: int) -> bytes:
        """Return the bytes of addresses; b'' where the image has none for the first of them."""
        for address, piece in self.pieces:
            if address <= begin < address + len(piece):
                return piece[begin - address : end - address]
        return b""


def kernel_code(image: Path, first: int) -> KernelCode:
    """Return the code in a kernel's image. first: the lowest address of its symbols.

    Raises RequestError: it cannot be read, or is packed in a way that is not known here.
    """
    try:
        linked = _linked(image.read_bytes())
        return KernelCode(tuple(segments(linked)) if linked.startswith(_ELF) else ((first, linked),))
    except OSError as error:
        raise _no_code(image, error.strerror or "") from error
    except (ValueError, EOFError, zlib.error, lzma.LZMAError, struct.error) as error:
        raise _no_code(image, str(error)) from error


def _no_code(image: Path, why: str) -> RequestError:
    return RequestError(
        f"the code of {image} cannot be read: {why}", cure="choose CONFIG_KERNEL_GZIP, and count again"
    )


def _linked(image: bytes) -> bytes:
    """Return the linked kernel: an ELF file, or what is loaded. Raises ValueError, and unpackers' errors."""
    if image.startswith(_ELF) or image[0x38:0x3C] == _ARM64:
        return image
    if image[0x202:0x206] == _SETUP:
        return _unpacked(_payload(image))
    return _linked(_unpacked(image))


def _payload(image: bytes) -> bytes:
    """Return what an image of x86 packs."""
    (version,) = struct.unpack_from("<H", image, 0x206)
    if version >= _PAYLOAD_PROTOCOL:
        offset, length = struct.unpack_from("<II", image, 0x248)
        begin = ((image[0x1F1] or 4) + 1) * 512 + offset
        return image[begin : begin + length]
    at = image.find(_PACKERS[0][0])  # earlier ones knew gzip alone
    if at < 0:
        raise ValueError("it has no packed kernel")
    return image[at:]


def _unpacked(packed: bytes) -> bytes:
    for magic, name, unpack in _PACKERS:
        if packed.startswith(magic):
            if unpack is None:
                raise ValueError(f"it is packed with {name}, which is not unpacked here")
            return unpack(packed)
    raise ValueError("it is no kernel of x86_64 or arm64")


def segments(linked: bytes, *, executed: bool = False) -> Iterator[tuple[int, bytes]]:
    """Yield the loaded segments of a 64-bit ELF file (the ELF specification, figures 1-3 and 2-1).

    executed: those alone that may be. Raises struct.error for one that ends too early.
    """
    (table,) = struct.unpack_from("<Q", linked, 0x20)
    size, count = struct.unpack_from("<HH", linked, 0x36)
    for number in range(count):
        kind, flags, offset, address, _, length = struct.unpack_from("<IIQQQQ", linked, table + number * size)
        if kind == 1 and (flags & 1 or not executed):  # PT_LOAD, PF_X
            yield address, linked[offset : offset + length]
