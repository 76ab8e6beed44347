"""Files that users name for a result: complete or not there, and a wrong path is a wrong request."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from bisector.app.output_file import require_writable, write_output_file
from bisector.errors import InfrastructureError, RequestError


def test_a_new_file_and_an_old_one_which_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    write_output_file(path, "ä\n")
    path.chmod(0o640)
    write_output_file(path, "new\n")
    assert path.read_text(encoding="utf-8") == "new\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["report.txt"]


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "absent" / "report.txt"
    with pytest.raises(RequestError, match=r"report.txt: cannot be written: No such file or directory"):
        write_output_file(path, "text")
    assert not path.parent.exists()


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="cannot be written: Is a directory"):
        write_output_file(tmp_path, "text")


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old", encoding="utf-8")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InfrastructureError, match="No space left on device"):
        write_output_file(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["report.txt"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    write_output_file(link, "text")
    assert link.is_symlink()
    assert (tmp_path / "target").read_text(encoding="utf-8") == "text"


def test_that_a_file_can_be_written_is_known_before_and_leaves_none(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("kept")
    require_writable(old)
    require_writable(tmp_path / "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old", "kept")]
    with pytest.raises(RequestError, match="cannot be written: No such file"):
        require_writable(tmp_path / "absent" / "new")
