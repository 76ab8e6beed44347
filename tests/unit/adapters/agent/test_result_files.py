"""Unpacking what a testbed sent: files and folders below one place, and nothing else."""

import io
import tarfile
from pathlib import Path

import pytest

from bisector.adapters.agent.result_files import unpack
from bisector.errors import InfrastructureError


def archive(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w") as out:
        for info, data in members:
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, 0o7777
    return info


def test_files_and_folders(tmp_path: Path) -> None:
    sent = archive(
        tmp_path / "a.tar",
        (member("./out", tarfile.DIRTYPE), b""),
        (member("./out/empty", tarfile.DIRTYPE), b""),
        (member("./out/deep/a"), b"text"),
        (member("./out/link", tarfile.SYMTYPE, "/etc/passwd"), b""),
        (member("./out/device", tarfile.CHRTYPE), b""),
    )
    unpack(sent, tmp_path / "home")
    found = sorted(str(p.relative_to(tmp_path / "home")) for p in (tmp_path / "home").rglob("*"))
    assert found == ["out", "out/deep", "out/deep/a", "out/empty"]
    assert (tmp_path / "home/out/deep/a").read_bytes() == b"text"
    assert (tmp_path / "home/out/deep/a").stat().st_mode & 0o7000 == 0


@pytest.mark.parametrize("name", ["/etc/cron.d/x", "../x", "out/../../x"])
def test_nothing_lands_elsewhere(name: str, tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="lies outside"):
        unpack(archive(tmp_path / "a.tar", (member(name), b"x")), tmp_path / "home")
    assert not (tmp_path / "x").exists()


def test_half_an_archive(tmp_path: Path) -> None:
    whole = archive(tmp_path / "a.tar", (member("out"), b"x" * 100_000)).read_bytes()
    (tmp_path / "half.tar").write_bytes(whole[:50_000])
    with pytest.raises(InfrastructureError, match="cannot be unpacked"):
        unpack(tmp_path / "half.tar", tmp_path / "home")
