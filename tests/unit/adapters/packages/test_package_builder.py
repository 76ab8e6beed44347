"""Unpacking into the cache; `tests/contract/test_builder_contract.py` has what every builder promises."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bisector.adapters.build.kernel_cache import KernelCache
from bisector.adapters.packages.kernel_list import read_kernels
from bisector.adapters.packages.package_builder import PackageBuilder
from bisector.errors import InfrastructureError
from bisector.ports import BuildOrder
from bisector.schemas.kernel.listed_kernel import ListedKernel
from tests.support.kernels import kernel_packages as packages

RECIPE = "x86_64-package"


def _two(folder: Path) -> tuple[ListedKernel, ...]:
    own = packages.kernel_folder(folder / "own", "6.2-own", "#7 SMP")
    return read_kernels(packages.listed(folder, packages.deb(folder, "6.1-1"), own))


def test_a_kernel_says_who_it_will_be(tmp_path: Path) -> None:
    first, second = _two(tmp_path)
    builder = PackageBuilder((first, second), KernelCache(tmp_path / "cache"))
    one, two = (builder.build(BuildOrder(kernel.id, RECIPE), lambda _: None) for kernel in (first, second))
    assert (one.release, one.version, one.build_id) == ("6.1-1-toy", "#1 SMP Debian 6.1-1", "")
    assert (two.release, two.version) == ("6.2-own", "#7 SMP")
    assert one.modules is not None
    assert "virtio_net" in one.load
    assert two.modules is None
    assert two.toolchain == "gcc 12"
    assert one.binary != two.binary


_SYMBOLS = b"".join(b"ffffffff81%06x T function_%d\n" % (n, n) for n in range(200))


def _deb(folder: Path) -> Path:
    root = packages.tree(folder / "root", "6.9.1-1.x86_64", "#1 SMP Fedora")
    (root / "boot/System.map-6.9.1-1.x86_64").write_bytes(_SYMBOLS)
    return packages.pack_deb(root, "linux-image-6.9.1", "6.9.1-1")


def _rpm(folder: Path) -> Path:
    return packages.rpm(folder, "6.9.1", _SYMBOLS)


def _fedora(folder: Path) -> str:
    """Pack modules on their own, as Fedora does; return both packages of a line."""
    image = packages.rpm(folder, "6.9.1", _SYMBOLS, holds="kernel")
    return f"{image} {packages.rpm(folder, '6.9.1', holds='modules')}"


@pytest.mark.skipif(shutil.which("rpmbuild") is None, reason="no rpmbuild")
@pytest.mark.parametrize("make", [_deb, _rpm, _fedora])
def test_a_package_becomes_all_that_a_boot_needs(make: Callable[[Path], object], tmp_path: Path) -> None:
    own = packages.kernel_folder(tmp_path / "own", "6.2-own")
    listed, _ = read_kernels(packages.listed(tmp_path, make(tmp_path), own))
    cache = KernelCache(tmp_path / "cache")
    kernel = PackageBuilder((listed,), cache).build(BuildOrder(listed.id, RECIPE), lambda _: None)
    release = "6.9.1-1.x86_64"
    assert (kernel.release, kernel.version, kernel.options) == (release, "#1 SMP Fedora", {"SMP": "y"})
    assert kernel.image.read_bytes() == packages.image(release, "#1 SMP Fedora")
    assert kernel.modules is not None
    with tarfile.open(kernel.modules) as archive:
        module = archive.extractfile(f"lib/modules/{release}/kernel/drivers/toy.ko")
        assert module is not None and module.read() == Path("/bin/true").read_bytes()
        assert {f"lib/modules/{release}/modules.{name}" for name in ("dep", "alias")} <= {*archive.getnames()}
    assert gzip.decompress((kernel.image.parent / "System.map.gz").read_bytes()) == _SYMBOLS
    facts = json.loads((kernel.image.parent / "kernel.json").read_text())
    assert (facts["release"], facts["sha"], facts["status"]) == (release, listed.id, "ok")
    assert facts["image"] == str(kernel.image.stat().st_size)
    assert cache.get(kernel.key) is not None, "whole, by its checksums"


@pytest.mark.parametrize("happened", ["is gone", "has changed"])
def test_a_file_that_is_not_what_was_listed_is_nobody_s_fault(happened: str, tmp_path: Path) -> None:
    first, _ = _two(tmp_path)
    file = Path(first.files[0])
    if happened == "is gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes() + b"\n")
    builder = PackageBuilder((first,), KernelCache(tmp_path / "cache"))
    with pytest.raises(InfrastructureError, match=f"{happened} since it was listed") as error:
        builder.build(BuildOrder(first.id, RECIPE), lambda _: None)
    assert "put it back" in error.value.cure


def test_what_is_in_the_cache_needs_no_file(tmp_path: Path) -> None:
    first, _ = _two(tmp_path)
    cache = KernelCache(tmp_path / "cache")
    PackageBuilder((first,), cache).build(BuildOrder(first.id, RECIPE), lambda _: None)
    Path(first.files[0]).unlink()
    assert PackageBuilder((first,), cache).build(BuildOrder(first.id, RECIPE), lambda _: None).cached
