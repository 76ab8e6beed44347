"""What a run left, moved on one machine; over SSH: tests/integration/test_ssh.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.agent.result_files import move_from_folder
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
