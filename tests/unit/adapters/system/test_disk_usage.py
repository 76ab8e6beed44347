"""What files take on the disk, and removals that a kill cannot leave half done."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from bisector.adapters.system.disk_usage import disk_usage, half_removed, remove
from bisector.errors import InfrastructureError


def test_holes_take_nothing_and_links_are_not_followed(tmp_path: Path) -> None:
    empty = disk_usage(tmp_path)
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(1 << 30)
    (tmp_path / "link").symlink_to("/usr")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "data").write_bytes(os.urandom(1 << 20))
    assert 1 << 20 <= disk_usage(tmp_path) - empty < 2 << 20
    assert disk_usage(tmp_path / "absent") == 0


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "data").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    remove(tmp_path / "link")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "data").exists()


def test_a_folder_is_gone_by_its_name_before_any_part_of_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / "image").write_text("x")

    def killed(path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            remove(tmp_path / "kernel")
    (rest,) = half_removed([tmp_path])
    assert (rest / "image").exists()
    assert not (tmp_path / "kernel").exists()
    remove(rest)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_removed_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match="file/x cannot be removed") as error:
        remove(tmp_path / "file" / "x")
    assert error.value.cure
