"""Whether a listed kernel has what a search needs of it, told by the names in its packages or its folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bisector.adapters.packages import kernel_identity
from bisector.adapters.packages.kernel_list import read_kernels
from bisector.errors import RequestError
from tests.support.kernels import kernel_packages as packages


def _ubuntu(folder: Path, release: str) -> tuple[Path, Path]:
    """Make a kernel as Ubuntu packs it: the configuration is beside the modules."""
    image = packages.tree(folder / f"image-{release}", release, f"#1 {release}", modules=False)
    modules = packages.tree(folder / f"modules-{release}", release, "")
    (image / f"boot/config-{release}").unlink()
    (modules / f"boot/vmlinuz-{release}").unlink()
    made = (("linux-image", image), ("linux-modules", modules))
    first, second = (packages.pack_deb(root, f"{name}-{release}", "1") for name, root in made)
    return first, second


def test_an_image_without_its_configuration_is_refused_before_anything_is_booted(tmp_path: Path) -> None:
    kernels = [_ubuntu(tmp_path, release) for release in ("5.15-generic", "5.16-generic")]
    with pytest.raises(RequestError, match=r"kernels\.list:1: .*no configuration of the kernel") as error:
        read_kernels(packages.listed(tmp_path, *(image for image, _ in kernels)))
    assert "linux-modules-5.15-generic" in error.value.cure
    both = packages.listed(tmp_path, *(f"{image} {modules}" for image, modules in kernels))
    assert [kernel.release for kernel in read_kernels(both)] == ["5.15-generic", "5.16-generic"]


@pytest.mark.skipif(shutil.which("rpmbuild") is None, reason="no rpmbuild")
def test_modules_of_another_kernel_are_refused(tmp_path: Path) -> None:
    older, modules = (packages.rpm(tmp_path, "6.9.1", holds=what) for what in ("kernel", "modules"))
    newer = packages.rpm(tmp_path, "6.9.2", holds="kernel")
    with pytest.raises(
        RequestError, match=r"kernels\.list:2: .*modules of 6\.9\.1-1.*and none of the kernel"
    ):
        read_kernels(packages.listed(tmp_path, f"{older} {modules}", f"{newer} {modules}"))
    assert len(read_kernels(packages.listed(tmp_path, f"{older} {modules}", newer))) == 2


def test_modules_of_another_kernel_in_a_folder_are_refused(tmp_path: Path) -> None:
    own = packages.kernel_folder(tmp_path / "own", "6.3.0")
    (own / "lib/modules/6.2.0/kernel").mkdir(parents=True)
    path = packages.listed(tmp_path, packages.deb(tmp_path, "6.1-1"), "own")
    with pytest.raises(RequestError, match=r"modules of 6\.2\.0, and none of the kernel 6\.3\.0") as error:
        read_kernels(path)
    assert "with its own modules" in error.value.cure
    (own / "lib/modules/6.3.0/kernel").mkdir(parents=True)
    assert [kernel.release for kernel in read_kernels(path)] == ["6.1-1-toy", "6.3.0"]


@pytest.mark.parametrize(("limit", "least"), [("BYTES_MAX", 100), ("MAX_MEMBERS", 1)])
def test_a_package_is_not_read_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, least: int
) -> None:
    path = packages.listed(tmp_path, packages.deb(tmp_path, "6.1-1"), packages.deb(tmp_path, "6.2-1"))
    monkeypatch.setattr(kernel_identity, limit, least)
    with pytest.raises(RequestError, match=r"kernels\.list:1: .*\.deb: more than") as error:
        read_kernels(path)
    assert error.value.cure == "look at what wrote it"


def test_two_kernels_in_a_line_are_refused(tmp_path: Path) -> None:
    one, two = packages.deb(tmp_path, "6.1-1"), packages.deb(tmp_path, "6.2-1")
    for line in (f"{one} {two}", f"{one} {one}"):
        with pytest.raises(RequestError, match="2 kernels in one line"):
            read_kernels(packages.listed(tmp_path, line, two))
