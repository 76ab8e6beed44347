"""Unpacking: what a kernel needs and nothing else, within its folder and its limits."""

from __future__ import annotations

import gzip
import io
import lzma
import subprocess
import tarfile
from pathlib import Path

import pytest

from bisector.adapters.packages import kernel_files
from bisector.errors import BuildFailed, InfrastructureError
from tests.support.kernels import kernel_packages as packages


def _unpack(work: Path, *files: Path) -> Path:
    work.mkdir()
    return kernel_files.unpack_kernel(files, work)


def _modules(kernel: Path) -> list[str]:
    with tarfile.open(kernel / "modules.tar.gz") as archive:
        return archive.getnames()


def test_a_package_becomes_image_configuration_and_modules(tmp_path: Path) -> None:
    kernel = _unpack(tmp_path / "work", packages.deb(tmp_path, "6.1-1"))
    assert sorted(path.name for path in kernel.iterdir()) == ["config", "image", "modules.tar.gz"]
    assert "lib/modules/6.1-1-toy/kernel/drivers/toy.ko" in _modules(kernel)
    assert "lib/modules/6.1-1-toy/modules.dep" in _modules(kernel)


def test_modules_are_kept_as_they_are_loaded(tmp_path: Path) -> None:
    """Not every kernel can decompress its own; usr/lib is where newer packages have them."""
    root = packages.tree(tmp_path / "root", "6.12", "#1 SMP")
    module = root / "lib/modules/6.12/kernel/drivers/toy.ko"
    module.with_suffix(".ko.xz").write_bytes(lzma.compress(module.read_bytes()))
    module.unlink()
    (root / "usr").mkdir()
    (root / "lib").rename(root / "usr/lib")
    kernel = _unpack(tmp_path / "work", packages.pack_deb(root, "linux-image-6.12", "6.12-1"))
    names = _modules(kernel)
    assert "lib/modules/6.12/kernel/drivers/toy.ko" in names
    assert not [name for name in names if name.endswith(".xz")]


def test_a_kernel_without_its_configuration_is_the_packages_failure(tmp_path: Path) -> None:
    root = packages.tree(tmp_path / "root", "6.12", "#1 SMP")
    (root / "boot/config-6.12").unlink()
    with pytest.raises(BuildFailed, match=r"the package of 6\.12 has no configuration") as error:
        _unpack(tmp_path / "work", packages.pack_deb(root, "linux-image-6.12", "6.12-1"))
    assert "boot/config-6.12 and lib/modules/6.12/config" in error.value.details


def test_a_folder_becomes_the_same(tmp_path: Path) -> None:
    kernel = _unpack(tmp_path / "work", packages.kernel_folder(tmp_path / "own", "6.3"))
    assert sorted(path.name for path in kernel.iterdir()) == ["config", "image"]


def _hostile(folder: Path, name: str, *, link: str = "", size: int = 4) -> Path:
    """Pack a Debian package by hand, with one member that no package should have."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as members:
        for path, content in (
            ("./boot/vmlinuz-6.1", packages.image("6.1", "#1 SMP")),
            ("./boot/config-6.1", b"CONFIG_SMP=y\n"),
        ):
            member = tarfile.TarInfo(path)
            member.size = len(content)
            members.addfile(member, io.BytesIO(content))
        member = tarfile.TarInfo(name)
        if link:
            member.type, member.linkname = tarfile.SYMTYPE, link
            members.addfile(member)
            member = tarfile.TarInfo(f"{name}/passwd")
        member.size = size
        members.addfile(member, io.BytesIO(bytes(size)))
    control = io.BytesIO()
    with tarfile.open(fileobj=control, mode="w:gz") as members:
        text = b"Package: linux-image-6.1\nVersion: 6.1-1\nArchitecture: amd64\nMaintainer: M\n"
        text += b"Description: d\n"
        member = tarfile.TarInfo("./control")
        member.size = len(text)
        members.addfile(member, io.BytesIO(text))
    for part, content in (
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", control.getvalue()),
        ("data.tar.gz", data.getvalue()),
    ):
        (folder / part).write_bytes(content)
    package = folder / "hostile.deb"
    parts = [str(folder / part) for part in ("debian-binary", "control.tar.gz", "data.tar.gz")]
    subprocess.run(["ar", "rc", str(package), *parts], check=True)
    return package


def test_nothing_is_written_outside(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="cannot be unpacked"):
        _unpack(tmp_path / "work", _hostile(tmp_path, "lib/modules/../../../../escaped"))
    assert not list(tmp_path.rglob("escaped"))


def test_links_lead_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    _unpack(tmp_path / "work", _hostile(tmp_path, "lib/modules/6.1", link=str(outside)))
    assert not list(outside.iterdir())


def test_what_is_too_large_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_files, "BYTES_MAX", 1 << 20)
    with pytest.raises(BuildFailed, match="cannot be unpacked"):
        _unpack(tmp_path / "work", _hostile(tmp_path, "lib/modules/6.1/big", size=2 << 20))


def test_a_missing_depmod_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_files, "find_program", lambda name: None)
    with pytest.raises(InfrastructureError, match="'depmod'") as error:
        _unpack(tmp_path / "work", _with_modules(tmp_path))
    assert error.value.cure == "apt-get install kmod"


def _with_modules(folder: Path) -> Path:
    own = packages.kernel_folder(folder / "own2", "6.3")
    (own / "lib/modules/6.3/kernel").mkdir(parents=True)
    (own / "lib/modules/6.3/kernel/toy.ko").write_bytes(b"x")
    return own


def test_the_sum_of_a_folder_changes_with_what_is_kept_of_it(tmp_path: Path) -> None:
    own = _with_modules(tmp_path)
    before = kernel_files.files_sum(own)
    (own / "notes").write_text("not kept", encoding="utf-8")
    assert kernel_files.files_sum(own) == before
    (own / "lib/modules/6.3/kernel/toy.ko").write_bytes(b"y")
    assert kernel_files.files_sum(own) != before


@pytest.mark.parametrize("ending", [".xz", ".zst", ".gz"])
def test_a_module_that_is_cut_or_damaged_is_the_kernels_failure(tmp_path: Path, ending: str) -> None:
    own = _with_modules(tmp_path)
    packed = lzma.compress(bytes(range(256)) * 1000)
    (own / f"lib/modules/6.3/kernel/cut.ko{ending}").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(BuildFailed, match=r"the modules of 6\.3 cannot be decompressed") as error:
        _unpack(tmp_path / "work", own)
    assert error.value.details == f"cut.ko{ending}"


def test_modules_that_grow_too_large_are_not_written_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = _with_modules(tmp_path)
    (own / "lib/modules/6.3/kernel/big.ko.xz").write_bytes(lzma.compress(bytes(16 << 20)))
    monkeypatch.setattr(kernel_files, "BYTES_MAX", 1 << 20)
    with pytest.raises(BuildFailed, match="are larger than"):
        _unpack(tmp_path / "work", own)
    assert (tmp_path / "work/tree/lib/modules/6.3/kernel/big.ko").stat().st_size <= 2 << 20


_SYMBOLS = b"".join(b"ffffffff81%06x T function_%d\n" % (n, n) for n in range(200))


@pytest.mark.parametrize("where", ["boot/System.map-6.12", "lib/modules/6.12/System.map", "usr"])
def test_symbols_of_a_package_are_kept(tmp_path: Path, where: str) -> None:
    root = packages.tree(tmp_path / "root", "6.12", "#1 SMP")
    if where == "usr":
        (root / "lib/modules/6.12/System.map").write_bytes(_SYMBOLS)
        (root / "usr").mkdir()
        (root / "lib").rename(root / "usr/lib")
    else:
        (root / where).write_bytes(_SYMBOLS)
    kernel = _unpack(tmp_path / "work", packages.pack_deb(root, "linux-image-6.12", "6.12-1"))
    assert gzip.decompress((kernel / "System.map.gz").read_bytes()) == _SYMBOLS


def test_symbols_of_a_folder_are_kept_and_a_stub_is_not(tmp_path: Path) -> None:
    own = packages.kernel_folder(tmp_path / "own", "6.3")
    (own / "System.map").write_bytes(_SYMBOLS)
    assert gzip.decompress((_unpack(tmp_path / "work", own) / "System.map.gz").read_bytes()) == _SYMBOLS
    (own / "System.map").write_text(
        "ffffffffffffffff B The real System.map is in the linux-image-dbg package\n"
    )
    assert not (_unpack(tmp_path / "again", own) / "System.map.gz").exists()


def test_a_package_of_two_kernels_is_not_unpacked_as_either(tmp_path: Path) -> None:
    """A list is read up to the first image and its configuration: one was listed, the other booted."""
    root = packages.tree(tmp_path / "root", "6.1-b", "#1 SMP", modules=False)
    (root / "boot/vmlinuz-6.1-a").write_bytes(packages.image("6.1-a", "#1 SMP"))
    (root / "boot/config-6.1-a").write_text("CONFIG_SMP=y\n", encoding="utf-8")
    with pytest.raises(BuildFailed, match=r"two_6\.1_amd64\.deb holds 2 kernels") as caught:
        _unpack(tmp_path / "work", packages.pack_deb(root, "two", "6.1"))
    assert caught.value.details == "boot/vmlinuz-6.1-a, boot/vmlinuz-6.1-b"
