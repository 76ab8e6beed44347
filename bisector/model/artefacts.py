"""Artefacts that hosts share: finished kernels, guest images, and the output of boots."""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

ArtefactKind = Literal["kernel", "image", "boot"]
"""kernel: by its key in the cache; image: of guests, by the key of its ingredients; boot: console and raw
output, as 'BISECTION@BOOT'. Each is one tar archive."""

KINDS: tuple[ArtefactKind, ...] = get_args(ArtefactKind)

KEY_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._@-]{0,239}"
"""A file's name everywhere, and no path: at most 240 of the 255 bytes that file systems allow."""
BOOT_PATTERN = r"boot-[0-9]{3,9}"
"""Of the ids that `boot_id` makes. Each is the name of the boot's folder, so nothing else may be one."""
SHA256_PATTERN = r"[0-9a-f]{64}"

MAX_BYTES: Mapping[ArtefactKind, int] = {"kernel": 16 << 30, "image": 16 << 30, "boot": 1 << 30}
"""Of the archive and of what it unpacks to. All modules with debug information have some GiB, an image with
a suite's packages too; a boot keeps at most 8 MiB of console, and a monitor's recording some 100 MiB."""


@dataclass(frozen=True, slots=True)
class Artefact:
    """Names one artefact. Raises ValueError for a key that is no file's name."""

    kind: ArtefactKind
    key: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS or not re.fullmatch(KEY_PATTERN, self.key):
            raise ValueError(f"'{self.kind} {self.key}' names no artefact")

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"

    @property
    def max_bytes(self) -> int:
        """The largest size that is put or taken."""
        return MAX_BYTES[self.kind]


def digest_header(checksum: str) -> str:
    """Return a SHA-256 (hex) as HTTP's field Repr-Digest has it (RFC 9530)."""
    return f"sha-256=:{binascii.b2a_base64(bytes.fromhex(checksum), newline=False).decode()}:"


def boot_id(number: int) -> str:
    """Return the id of a bisection's boot, counted from 1."""
    return f"boot-{number:03d}"


def is_boot_id(text: str) -> bool:
    """Return whether a text may be joined to a path as the folder of a boot."""
    return re.fullmatch(BOOT_PATTERN, text) is not None


def boot_artefact(bisection: str, boot: str) -> Artefact:
    """Return the name of what a boot of a bisection has left."""
    return Artefact("boot", f"{bisection}@{boot}")
