"""What modules a guest needs before its root file system, in which order."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from bisector.adapters.guest import module_initramfs as initramfs
from bisector.adapters.system.architectures import X86_64
from bisector.errors import InfrastructureError

DEP = """kernel/a.ko:
kernel/b_x.ko: kernel/a.ko
kernel/c.ko: kernel/b_x.ko kernel/a.ko
kernel/d.ko:
"""


def test_modules_are_loaded_behind_what_they_need() -> None:
    needs = initramfs.dependencies(DEP)
    assert initramfs.in_order(needs, ["c"]) == ["kernel/a.ko", "kernel/b_x.ko", "kernel/c.ko"]
    assert initramfs.in_order(needs, ["d", "b-x", "built_in"]) == [
        "kernel/d.ko",
        "kernel/a.ko",
        "kernel/b_x.ko",
    ]


def _modules(path: Path, files: dict[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(f"lib/modules/6.1.0/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return path


@pytest.mark.skipif(not (shutil.which("musl-gcc") or shutil.which("gcc")), reason="no C compiler")
@pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio is not installed")
def test_the_initramfs_holds_what_is_loaded_and_nothing_else(tmp_path: Path) -> None:
    files = {"modules.dep": DEP, **{f"kernel/{name}.ko": name * 9 for name in ("a", "b_x", "c", "d")}}
    archive = initramfs.module_initramfs(_modules(tmp_path / "m.tar.gz", files), ["b-x"], tmp_path, X86_64)
    subprocess.run(
        ["cpio", "-i", "--quiet", "--nonmatching", "dev/*"], input=archive, cwd=tmp_path, check=True
    )
    place = "lib/modules/6.1.0/kernel"
    assert (tmp_path / "perfbisect.modules").read_text() == f"/{place}/a.ko\n/{place}/b_x.ko\n"
    assert sorted(path.name for path in (tmp_path / place).iterdir()) == ["a.ko", "b_x.ko"]
    assert (tmp_path / "init").stat().st_mode & 0o111


def test_modules_without_their_dependencies_are_not_guessed(tmp_path: Path) -> None:
    path = _modules(tmp_path / "m.tar.gz", {"kernel/a.ko": "a"})
    with pytest.raises(InfrastructureError, match=r"has no modules\.dep"):
        initramfs.module_initramfs(path, ["a"], tmp_path, X86_64)
