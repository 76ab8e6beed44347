"""Temporary files of processes that were killed: removed, and nothing else."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from bisector.adapters.system import leftovers

_MAKE_AND_BE_KILLED = """
import os, pathlib, signal, sys
from bisector.adapters.system import leftovers
folder = leftovers.make_temporary_folder("work-", pathlib.Path(sys.argv[1]))
(folder / "deep").mkdir()
(folder / "deep" / "file").write_text("x")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_folder_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _MAKE_AND_BE_KILLED, str(tmp_path)], check=False)
    assert done.returncode == -9
    assert len(list(tmp_path.iterdir())) == 1
    leftovers.remove_leftovers("other-", tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    leftovers.remove_leftovers("work-", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("file", "owner"), [("notes", "x"), ("owner", ""), ("owner", "no identity")])
def test_what_may_belong_to_a_living_process_stays(tmp_path: Path, file: str, owner: str) -> None:
    mine = leftovers.make_temporary_folder("work-", tmp_path)
    unknown = tmp_path / "work-un_known"
    unknown.mkdir()
    (unknown / file).write_text(owner)
    leftovers.remove_leftovers("work-", tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([mine, unknown])


@pytest.mark.parametrize("draft", [None, "", "boot:1:2"])
def test_a_folder_whose_maker_was_killed_at_once_is_removed(tmp_path: Path, draft: str | None) -> None:
    folder, another = tmp_path / "work-12345678", tmp_path / "work-of-another-program"
    folder.mkdir()
    another.mkdir()
    if draft is not None:
        (folder / "owner.new").write_text(draft)
    leftovers.remove_leftovers("work-", tmp_path)
    assert list(tmp_path.iterdir()) == [another]


@pytest.mark.parametrize("moment", ["write_text", "rename"])
def test_a_living_process_whose_folder_was_thus_removed_makes_another(
    tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    action, removed = getattr(Path, moment), list[Path]()

    def remove_first(path: Path, *arguments: object, **options: object) -> object:
        if not removed:
            removed.append(path.parent)
            leftovers.remove_leftovers("work-", tmp_path)
        return action(path, *arguments, **options)

    monkeypatch.setattr(Path, moment, remove_first)
    made = leftovers.make_temporary_folder("work-", tmp_path)
    assert removed != [made]
    assert list(tmp_path.iterdir()) == [made]
    assert [path.name for path in made.iterdir()] == ["owner"]


def test_boots_lose_what_only_a_living_boot_needs(tmp_path: Path) -> None:
    boot = tmp_path / "boots" / "boot-001"
    boot.mkdir(parents=True)
    for name in ("console.log", "run-000.out", "initramfs", "serial.in", "deploy.tar"):
        (boot / name).write_text("x")
    leftovers.remove_leftovers_of_boots(tmp_path)
    assert sorted(path.name for path in boot.iterdir()) == ["console.log", "run-000.out"]
    leftovers.remove_leftovers_of_boots(tmp_path / "never begun")


def test_a_full_disk_leaves_no_folder_without_an_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_text(path: Path, text: str, encoding: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", write_text)
    with pytest.raises(OSError, match="No space"):
        leftovers.make_temporary_folder("work-", tmp_path)
    assert list(tmp_path.iterdir()) == []
