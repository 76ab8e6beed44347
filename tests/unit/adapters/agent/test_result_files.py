"""What a run left, moved on one machine or sent by a fake; over real SSH: tests/integration/test_ssh.py."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any, cast

import pytest

from bisector.adapters.agent.result_files import fetch_over_ssh, move_from_folder
from bisector.adapters.system.channel import LineClosed
from bisector.adapters.system.command import CompletedCommand
from bisector.adapters.system.ssh import SSH
from bisector.errors import InfrastructureError


def test_a_file_or_a_folder_is_moved_and_nothing_is_left(tmp_path: Path) -> None:
    work, home = tmp_path / "work", tmp_path / "boot" / "run-000.results"
    fetch = move_from_folder(work)
    (work / "out" / "deep").mkdir(parents=True)
    (work / "out" / "deep" / "a").write_text("text")
    assert fetch("out", home)
    assert (home / "out" / "deep" / "a").read_text() == "text"
    assert not fetch("out", home)  # a next run that leaves nothing
    (work / "sub").mkdir()
    (work / "sub" / "one.json").write_text("{}")
    assert fetch("sub/one.json", home)
    assert (home / "sub" / "one.json").is_file()


def test_a_folder_that_cannot_be_made_is_no_failure_of_the_workload(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "out").touch()
    (tmp_path / "home").touch()
    with pytest.raises(InfrastructureError, match="cannot bring 'out'"):
        move_from_folder(tmp_path / "work")("out", tmp_path / "home")


class Sender:
    """Stands in for SSH: sends a folder with one file, and ends with a code or an error."""

    host = "root@bed:22"

    def __init__(self, code: int = 0, error: Exception | None = None) -> None:
        self.code, self.error = code, error

    def save(self, command: list[str], path: Path, **_: Any) -> CompletedCommand:
        content = path.with_name("sent")
        content.write_text("text")
        with tarfile.open(path, "w") as tar:
            tar.add(content, "./out/a")
        content.unlink()
        if self.error is not None:
            raise self.error
        return CompletedCommand(tuple(command), self.code, "tar: out: no")


def fetched(sender: Sender, target: Path) -> bool:
    return fetch_over_ssh(cast(SSH, sender), "/work")("out", target)


def test_the_files_of_one_run_after_another_arrive_and_their_archive_goes(tmp_path: Path) -> None:
    """An archive that stays, of up to 1 GiB for each run, fills the disk of the state folder."""
    for number in range(2):
        assert fetched(Sender(), tmp_path / f"run-{number:03d}.results")
        assert (tmp_path / f"run-{number:03d}.results" / "out" / "a").read_text() == "text"
    assert not fetched(Sender(code=66), tmp_path / "run-002.results")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run-000.results", "run-001.results"]


def test_files_that_cannot_be_sent_are_the_testbeds_failure_and_leave_no_archive(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="'out' cannot be fetched from root@bed:22") as caught:
        fetched(Sender(code=2), tmp_path / "run-000.results")
    assert caught.value.details == "tar: out: no"
    with pytest.raises(LineClosed):
        fetched(Sender(error=LineClosed("broke")), tmp_path / "run-000.results")
    assert list(tmp_path.iterdir()) == []
