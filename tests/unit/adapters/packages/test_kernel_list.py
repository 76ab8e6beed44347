"""Lists of kernels: what they name, in which order, and what is refused before anything is unpacked."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bisector.adapters.packages import kernel_list
from bisector.adapters.packages.kernel_list import read_kernels
from bisector.errors import RequestError
from bisector.model.commit_graph import short_name
from tests.support.kernels import kernel_packages as packages


def test_a_file_names_packages_and_folders_in_its_order(tmp_path: Path) -> None:
    first, second = packages.deb(tmp_path, "6.1.9-1"), packages.deb(tmp_path, "6.1.10-1")
    folder = packages.kernel_folder(tmp_path / "own kernel", "6.2.0-own")
    path = packages.listed(tmp_path, "# two packages", second.name, "", first, f"'{folder.name}'")
    kernels = read_kernels(path)
    assert [k.release for k in kernels] == ["6.1.10-1-toy", "6.1.9-1-toy", "6.2.0-own"]
    assert [short_name(k.id) for k in kernels] == [
        "linux-image-6.1.10-1-toy_6.1.10-1",
        "linux-image-6.1.9-1-toy_6.1.9-1",
        "own-kernel",
    ]
    assert kernels[0].built == "#1 SMP Debian 6.1.10-1"
    assert kernels[0].by == "Me <me@example.org>"
    assert kernels[0].id != kernels[1].id


def test_a_folder_is_read_in_the_order_of_versions(tmp_path: Path) -> None:
    for version in ("6.1.10-1", "6.1.9-1", "6.1.9-1~deb12u1", "6.1.10~rc1-1"):
        packages.deb(tmp_path, version)
    (tmp_path / "notes.txt").write_text("not a package", encoding="utf-8")
    names = [short_name(kernel.id) for kernel in read_kernels(tmp_path)]
    assert names == ["6.1.9-1~deb12u1", "6.1.9-1", "6.1.10~rc1-1", "6.1.10-1"]


def test_kernels_of_one_name_are_called_by_their_folders(tmp_path: Path) -> None:
    """As two builds of one checkout are: a report that calls both 'build' names no culprit."""
    for tree, release in (("6.8", "6.8.0"), ("6.8 fixed", "6.8.0-fixed")):
        packages.kernel_folder(tmp_path / tree / "build", release)
    kernels = read_kernels(packages.listed(tmp_path, "6.8/build", "'6.8 fixed/build'"))
    assert [short_name(kernel.id) for kernel in kernels] == ["6.8-build", "6.8-fixed-build"]


@pytest.mark.parametrize("is_folder", [False, True], ids=["a list", "a folder"])
def test_too_many_kernels_are_refused_before_any_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_folder: bool
) -> None:
    """Each package that is read costs 30 ms."""
    monkeypatch.setattr(kernel_list, "_KERNELS_MAX", 2)
    monkeypatch.setattr(kernel_list, "read_package", lambda *_: pytest.fail("a package was read"))
    made = [packages.deb(tmp_path, f"6.{number}-1") for number in range(3)]
    path = tmp_path if is_folder else packages.listed(tmp_path, *made)
    with pytest.raises(RequestError, match="more than 2 kernels"):
        read_kernels(path)


def test_packages_of_one_version_in_a_folder_have_no_order(tmp_path: Path) -> None:
    """Two flavours would alternate, and their difference would be taken for a change."""
    for flavour in ("amd64", "cloud-amd64"):
        for number in ("48", "50"):
            packages.deb(tmp_path, f"6.1.{number}-1", release=f"6.1.0-{number}-{flavour}", built=flavour)
    with pytest.raises(RequestError, match=r"-48-(cloud-)?amd64_6\.1\.48-1 and .* have the same version"):
        read_kernels(tmp_path)


@pytest.mark.skipif(shutil.which("rpmbuild") is None, reason="no rpmbuild")
def test_packages_of_rpm_are_read_and_ordered(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    for version in ("6.10.2", "6.9.1"):
        shutil.copy(packages.rpm(tmp_path, version), folder)
    kernels = read_kernels(folder)
    assert [short_name(kernel.id) for kernel in kernels] == ["6.9.1-1", "6.10.2-1"]
    assert kernels[0].release == "6.9.1-1.x86_64"
    packages.deb(folder, "6.1-1")
    with pytest.raises(RequestError, match="no common order"):
        read_kernels(folder)


@pytest.mark.skipif(shutil.which("rpmbuild") is None, reason="no rpmbuild")
def test_a_package_of_rpm_without_a_kernel_is_refused(tmp_path: Path) -> None:
    modules, other = packages.rpm(tmp_path, "6.9.1", holds="modules"), packages.deb(tmp_path, "6.1-1")
    with pytest.raises(RequestError, match=r"kernels\.list:2: .*\.rpm: no kernel, there is neither") as error:
        read_kernels(packages.listed(tmp_path, other, modules))
    assert "a package of modules belongs on the line of its kernel" in error.value.cure


def test_modules_of_a_package_of_their_own_belong_to_the_line_of_their_kernel(tmp_path: Path) -> None:
    image = packages.deb(tmp_path, "6.8-1")
    own = packages.tree(tmp_path / "modules", "6.8-1-toy", "#1 SMP")
    shutil.rmtree(own / "boot")
    modules = packages.pack_deb(own, "linux-modules-6.8-1-toy", "6.8-1")
    other = packages.deb(tmp_path, "6.9-1")
    kernel, _ = read_kernels(packages.listed(tmp_path, f"{image} {modules}", other))
    assert len(kernel.files) == len(kernel.sums) == 2
    with pytest.raises(RequestError, match=r"kernels\.list:2: .*no kernel"):
        read_kernels(packages.listed(tmp_path, other, modules))


def _two(folder: Path) -> tuple[Path, Path]:
    return packages.deb(folder, "6.1-1"), packages.deb(folder, "6.2-1")


def _damaged(folder: Path) -> Path:
    one, two = _two(folder)
    two.write_bytes(two.read_bytes()[:700])
    return packages.listed(folder, one, two)


def _not_an_image(folder: Path) -> Path:
    one, _ = _two(folder)
    own = packages.kernel_folder(folder / "own", "6.3")
    (own / "vmlinuz").write_bytes(b"MZ" + bytes(5000))
    return packages.listed(folder, one, own)


def _half_a_folder(folder: Path) -> Path:
    own = packages.kernel_folder(folder / "own", "6.3")
    (own / "config").unlink()
    return packages.listed(folder, own, own)


WRONG: dict[str, tuple[Callable[[Path], Path], str, str]] = {
    "none": (lambda f: f / "none", "none: no such file", "mend the path"),
    "empty": (lambda f: packages.listed(f, "# nothing"), "names no kernel", "two at least"),
    "empty folder": (lambda f: f, "names no kernel", "two at least"),
    "one": (lambda f: packages.listed(f, packages.deb(f, "6.1-1")), "names one kernel", "two at least"),
    "missing file": (
        lambda f: packages.listed(f, packages.deb(f, "6.1-1"), "gone.deb"),
        "kernels.list:2: .*gone.deb does not exist",
        "name a package",
    ),
    "no package": (
        lambda f: packages.listed(f, packages.deb(f, "6.1-1"), Path(__file__)),
        "kernels.list:2: .*is no package",
        "vmlinuz and config",
    ),
    "not of this architecture": (
        lambda f: packages.listed(f, packages.deb(f, "6.1-1", arch="arm64"), "x.deb"),
        "kernels.list:1: .*a package for arm64",
        "amd64",
    ),
    "damaged": (_damaged, "kernels.list:2: .*a damaged package", "again"),
    "no x86 image": (_not_an_image, "kernels.list:2: .*no bzImage", "amd64"),
    "no configuration": (_half_a_folder, "kernels.list:1: .*no file 'config'", "config"),
    "quotation": (lambda f: packages.listed(f, "'a"), "kernels.list:1: No closing quotation", "close"),
    "twice": (
        lambda f: packages.listed(f, *_two(f), "linux-image-6.1-1-toy_6.1-1_amd64.deb"),
        r"kernels.list:3: the same kernel as .*kernels.list:1",
        "leave one",
    ),
    "a release that is a template": (
        lambda f: packages.listed(
            f, packages.deb(f, "6.1-1"), packages.kernel_folder(f / "own", "6.1{{lookup('pipe','id')}}")
        ),
        r"kernels.list:2: its release .*lookup.* cannot be used",
        "CONFIG_LOCALVERSION",
    ),
    "twins": (
        lambda f: packages.listed(
            f,
            packages.deb(f, "6.1-1", release="6.1", built="#1 SMP"),
            packages.deb(f, "6.1-2", release="6.1", built="#1 SMP"),
        ),
        "cannot be told from",
        "LOCALVERSION",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named_with_its_line_and_a_cure(case: str, tmp_path: Path) -> None:
    make, message, cure = WRONG[case]
    with pytest.raises(RequestError, match=message) as error:
        read_kernels(make(tmp_path))
    assert cure in error.value.cure


def test_kernels_of_one_release_are_told_apart_by_what_was_built(tmp_path: Path) -> None:
    """Debian keeps the release over updates that keep the interface of modules."""
    one = packages.deb(tmp_path, "6.1.1-1", release="6.1.0-48-amd64")
    two = packages.deb(tmp_path, "6.1.2-1", release="6.1.0-48-amd64")
    kernels = read_kernels(packages.listed(tmp_path, one, two))
    assert kernels[0].release == kernels[1].release
    assert kernels[0].built != kernels[1].built
