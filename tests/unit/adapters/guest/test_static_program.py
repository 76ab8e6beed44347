"""Programs for guests: compiled once, and again when their source changes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from bisector.adapters.guest import static_program
from bisector.adapters.guest.static_program import SOURCES, compile_static
from bisector.adapters.system.architectures import X86_64
from bisector.errors import InfrastructureError

needs_compiler = pytest.mark.skipif(
    not (shutil.which("musl-gcc") or shutil.which("gcc")), reason="no C compiler"
)


@needs_compiler
@pytest.mark.parametrize("source", sorted(path.name for path in SOURCES.glob("*.c")))
def test_each_program_of_a_guest_compiles(tmp_path: Path, source: str) -> None:
    assert compile_static(source, tmp_path, X86_64).startswith(b"\x7fELF")


@needs_compiler
def test_a_program_is_static_and_compiled_once_a_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static_program, "SOURCES", tmp_path)
    (tmp_path / "one_two.c").write_text("int main(void) { return 7; }")
    first = compile_static("one_two.c", tmp_path / "cache", X86_64)
    (kept,) = (tmp_path / "cache" / "images").iterdir()
    assert kept.name.startswith("one-two-")
    kept.chmod(0o755)
    assert subprocess.run([kept], check=False).returncode == 7
    before = kept.stat().st_mtime_ns
    assert compile_static("one_two.c", tmp_path / "cache", X86_64) == first
    assert kept.stat().st_mtime_ns == before
    (tmp_path / "one_two.c").write_text("int main(void) { return 8; }")
    assert compile_static("one_two.c", tmp_path / "cache", X86_64) != first


@needs_compiler
def test_a_program_that_does_not_compile_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static_program, "SOURCES", tmp_path)
    (tmp_path / "x.c").write_text("int main(")
    with pytest.raises(InfrastructureError, match="failed with code 1"):
        compile_static("x.c", tmp_path / "cache", X86_64)
    assert not list((tmp_path / "cache").rglob("x-*"))
