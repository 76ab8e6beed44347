"""What packages say of themselves, and the programs that read them."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from bisector.adapters.packages import package_file
from bisector.errors import InfrastructureError, RequestError
from tests.support.kernels import kernel_packages as packages


def test_a_package_says_what_it_is(tmp_path: Path) -> None:
    path = packages.deb(tmp_path, "6.1-1")
    assert package_file.package_format(path) == "deb"
    found = package_file.read_package(path, "deb")
    assert (found.name, found.version, found.by) == ("linux-image-6.1-1-toy", "6.1-1", "Me <me@example.org>")
    with package_file.reading_files(path, "deb") as files:
        assert "./boot/vmlinuz-6.1-1-toy" in [member.name for member in files]


def test_a_huge_header_in_a_package_is_refused(tmp_path: Path) -> None:
    """`tarfile` reads it into memory, whatever size it claims."""
    (tmp_path / "debian-binary").write_bytes(b"2.0\n")
    huge = tarfile.TarInfo("huge")
    huge.type, huge.size = tarfile.XHDTYPE, 4 << 20
    for name, members in (("control.tar.gz", [tarfile.TarInfo("control")]), ("data.tar.gz", [huge])):
        with tarfile.open(tmp_path / name, "w:gz") as out:
            for member in members:
                out.addfile(member, io.BytesIO(bytes(member.size)))
    names = ["debian-binary", "control.tar.gz", "data.tar.gz"]
    subprocess.run(["ar", "rc", "a.deb", *names], cwd=tmp_path, check=True)
    with (
        pytest.raises(tarfile.ReadError, match="a header of 4194304 bytes"),
        package_file.reading_files(tmp_path / "a.deb", "deb") as files,
    ):
        files.getmembers()


def test_what_no_package_has_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.deb"
    path.write_bytes(b"PK\x03\x04")
    assert package_file.package_format(path) is None


def test_a_version_that_no_package_may_have_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would become part of an id, and of a program for rpm."""
    monkeypatch.setitem(package_file._FIELDS, "deb", ("Package", "Maintainer", "Architecture", "Version"))
    with pytest.raises(RequestError, match="a damaged package"):
        package_file.read_package(packages.deb(tmp_path, "6.1-1"), "deb")


@pytest.mark.parametrize(
    ("format_", "program", "package"), [("deb", "dpkg-deb", "dpkg"), ("rpm", "rpm2archive", "rpm")]
)
def test_a_missing_program_is_named(
    format_: package_file.Format, program: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_file, "find_program", lambda name: None)
    with pytest.raises(InfrastructureError, match=f"'{program}'") as error:
        package_file.read_package(Path("x"), format_)
    assert error.value.cure == f"apt-get install {package}"
