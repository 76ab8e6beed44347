"""The note that a machine is in use outlives a process that is killed, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.machine.use_note import UseNote
from bisector.errors import InfrastructureError


def test_only_what_another_process_has_not_given_back_is_left(tmp_path: Path) -> None:
    one, next_, looker = (UseNote(tmp_path, "box 1/a", token) for token in ("one", "next", ""))
    assert not next_.is_of_another(), "nobody has used it"
    one.begin()
    assert (one.is_of_another(), next_.is_of_another(), looker.is_of_another()) == (False, True, True)
    next_.begin()
    assert (one.is_of_another(), next_.is_of_another()) == (True, False)
    next_.end()
    next_.end()
    assert not any(note.is_of_another() for note in (one, next_, looker))


def test_each_testbed_has_its_own(tmp_path: Path) -> None:
    UseNote(tmp_path, "a/b", "one").begin()
    assert [path.name for path in (tmp_path / "testbeds").iterdir()] == ["a%2Fb.in-use"]
    assert not UseNote(tmp_path, "a_b").is_of_another()


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    note = UseNote(tmp_path, "box", "one")
    note.path.mkdir(parents=True)
    for action in (note.is_of_another, note.begin, note.end):
        with pytest.raises(InfrastructureError, match=r"cannot (read|remove) .*box\.in-use"):
            action()
