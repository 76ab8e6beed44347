"""What is missing on this machine is named with what brings it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

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
    disk = checks(tmp_path / "not" / "yet")[-1]
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
