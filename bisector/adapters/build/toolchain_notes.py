"""Notes of what the builders' compilers call themselves: the cache can then be asked without a builder."""

from __future__ import annotations

import json
from pathlib import Path

from bisector.adapters.system.files import write_atomically
from bisector.schemas.documents.json_reader import read_own_json
from bisector.schemas.kernel.toolchain import Toolchain


def read_note(cache: Path, system: str, row: Toolchain) -> str | None:
    """Return what a compiler called itself when it was last asked; None if it never was.

    system: see `KernelBuilder`.
    """
    note = read_own_json(_path(cache, system, row), ("toolchain",))
    return None if note is None else str(note["toolchain"])


def write_note(cache: Path, system: str, row: Toolchain, toolchain: str) -> None:
    """Keep what a compiler calls itself."""
    write_atomically(_path(cache, system, row), json.dumps({"toolchain": toolchain}))


def _path(cache: Path, system: str, row: Toolchain) -> Path:
    return cache / "builder" / f"{system}.{row.identity.replace('/', '_')}.json"
