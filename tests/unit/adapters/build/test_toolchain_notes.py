"""Notes of what a builder's compiler calls itself."""

from __future__ import annotations

from pathlib import Path

from bisector.adapters.build.toolchain_notes import read_note, write_note
from bisector.schemas.kernel.toolchain import Toolchain


def test_a_note_belongs_to_a_system_and_a_toolchain(tmp_path: Path) -> None:
    gcc, clang = (Toolchain(name=name, compiler=name) for name in ("gcc", "clang"))
    write_note(tmp_path, "192.0.2.1-22", gcc, "gcc (Debian) 12")
    assert read_note(tmp_path, "192.0.2.1-22", gcc) == "gcc (Debian) 12"
    assert read_note(tmp_path, "192.0.2.1-22", clang) is None
    assert read_note(tmp_path, "here", gcc) is None
