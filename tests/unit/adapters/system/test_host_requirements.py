"""What is missing on this machine is named with what brings it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bisector.adapters.system import host_requirements
from bisector.adapters.system.host_requirements import check_folder, checks, description, install
from tests.support.small_disk import fill, mounted


def test_all_programs_are_checked_and_a_missing_one_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, **_: None if name == "bison" else f"/usr/bin/{name}")
    found = {check.name: check for check in checks(tmp_path)}
    assert {program for program, _, _ in host_requirements.PROGRAMS} <= found.keys()
    assert found["git"].ok
    assert found["git"].found == "/usr/bin/git"
    assert not found["bison"].ok
    assert found["bison"].cure == install("bison")
    assert found["bison"].needed == "building kernels"


@pytest.mark.parametrize(("user", "command"), [(0, "apt-get install"), (1000, "sudo apt-get install")])
def test_packages_are_installed_as_root(monkeypatch: pytest.MonkeyPatch, user: int, command: str) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert install("gcc make") == f"{command} --no-install-recommends gcc make"


@pytest.mark.parametrize(("gib", "fits"), [(9.9, False), (10.1, True)])
def test_the_disk_of_a_folder_that_is_not_there_yet_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gib: float, fits: bool
) -> None:
    asked: list[Path] = []

    def usage(path: Path) -> object:
        asked.append(path)
        return type("Usage", (), {"free": gib * 2**30})

    monkeypatch.setattr(shutil, "disk_usage", usage)
    disk = next(check for check in checks(tmp_path / "not" / "yet") if check.name == "disk space")
    assert disk.ok == fits
    assert asked == [tmp_path]
    assert fits or "PERFBISECT_CACHE_DIR" in disk.cure


def test_a_folder_that_cannot_be_written_is_told_with_the_setting_that_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing can be kept there, and the first command that writes would be the one to say so."""
    wanted = tmp_path / "state" / "deep"
    assert check_folder("state folder", wanted, "NAME", needed="records").found == str(wanted)
    monkeypatch.setattr(os, "access", lambda path, mode: not (path == tmp_path and mode & os.W_OK))
    check = check_folder("state folder", wanted, "NAME", needed="records")
    assert (check.ok, check.wrong, check.needed) == (False, f"{tmp_path} cannot be written", "records")
    assert "NAME" in check.cure


def test_a_folder_whose_place_is_taken_by_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    check = check_folder("cache folder", tmp_path / "cache" / "perfbisect", "NAME", needed="kernels")
    assert check.wrong == f"{tmp_path / 'cache'} is a file, not a folder"
    assert check.cure.startswith("move it away")


def test_a_folder_below_one_that_may_not_be_entered_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A variable names a folder of root: 'doctor' ended with that one error, and checked nothing else."""
    closed, really = tmp_path / "closed", os.stat
    closed.mkdir()

    def stat(path: object, *args: Any, **kwargs: Any) -> object:
        if isinstance(path, (str, Path)) and Path(path).parent == closed:
            raise PermissionError(13, "Permission denied", str(path))  # tests run as root, who may enter
        return really(path, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(os, "access", lambda path, mode: path != closed)
    check = check_folder("cache folder", closed / "perfbisect", "NAME", needed="kernels")
    assert check.wrong == f"{closed} cannot be written"


@pytest.mark.parametrize("flags", [0, os.ST_NOEXEC])
def test_a_cache_in_which_no_program_may_be_started_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, flags: int
) -> None:
    """Compilers and QEMU were said not to work."""
    disk = SimpleNamespace(f_flag=flags, f_bavail=9, f_frsize=9, f_blocks=9, f_bfree=9)
    monkeypatch.setattr(os, "statvfs", lambda _: disk)
    found = next(check for check in checks(tmp_path) if check.name == "programs of builds")
    assert found.wrong == (f"{tmp_path} is mounted noexec" if flags else "")
    assert ("PERFBISECT_CACHE_DIR" in found.cure) is not found.ok


def test_a_folder_on_a_full_disk_is_told(tmp_path: Path) -> None:
    """A search does not begin there, and all was said to be well."""
    with mounted(tmp_path / "small", 4) as folder:
        assert check_folder("state folder", folder, "NAME", needed="records").ok
        fill(folder)
        check = check_folder("state folder", folder / "state", "NAME", needed="records")
        assert (check.ok, check.wrong) == (False, f"the disk of {folder} is full")
        assert "prune" in check.cure and "NAME" in check.cure


def test_a_report_says_what_ran_where() -> None:
    found = description()
    assert {"host kernel", "host CPU", "host memory", "python", "git"} <= found.keys()
    assert found["git"].startswith("git version ")


def test_a_tool_that_is_not_there_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git" not in description()
