"""The headers of an x86 kernel image: its version and facts, read without booting it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.system.files import os_errors_reported

_MAGIC_AT, _MAGIC = 0x202, b"HdrS"
_VERSION_AT = 0x20E
_SETUP = 0x200
"""Documentation/x86/boot.txt: the version text is as far behind the boot sector as the word at 0x20e says."""

_TEXT = re.compile(r"(?P<release>\S+) \(.*?\) (?P<version>#.*)", re.DOTALL)

HEAD_BYTES = 0x200 * 65
"""The boot sector and at most 64 sectors of setup."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What `uname -r` and `uname -v` must say when this image runs."""

    release: str
    version: str


def identity(image: Path) -> Identity | None:
    """Return the release and version that the image states; None for a file without it (no bzImage).

    Raises InfrastructureError if it cannot be read.
    """
    with os_errors_reported(f"cannot read the kernel {image}"), image.open("rb") as file:
        return identity_in(file.read(HEAD_BYTES))


def identity_in(head: bytes) -> Identity | None:
    """Return the same of the first `HEAD_BYTES` of an image."""
    if head[_MAGIC_AT : _MAGIC_AT + 4] != _MAGIC:
        return None
    start = _SETUP + int.from_bytes(head[_VERSION_AT : _VERSION_AT + 2], "little")
    text = head[start:].split(b"\0", 1)[0].decode(errors="replace")
    match = _TEXT.fullmatch(text)
    return Identity(match["release"], match["version"].strip()) if match else None
