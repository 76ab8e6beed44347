"""What is told while a kernel compiles, and that a request to stop is passed on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bisector.adapters.build import build_progress
from bisector.adapters.build.build_progress import BuildProgress


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_progress, "_REPORT_SECONDS", 0.0)


@pytest.mark.parametrize("log", ["tuxmake/build.log", "build.log"], ids=["tuxmake", "make"])
def test_files_are_counted_in_the_log_of_either_driver_and_told_when_there_are_more(
    tmp_path: Path, log: str
) -> None:
    path = tmp_path / "builder" / "work" / log
    path.parent.mkdir(parents=True)
    told: list[str] = []
    progress = BuildProgress(tmp_path, 1200, told.append, None)
    assert not progress()
    path.write_text("make\n  CC      a.o\n  LD      b.o\n  CC      c.o\n")
    assert not progress()
    assert not progress()
    path.write_text("make\n" + "  CC      x.o\n" * 1001)
    assert not progress()
    assert told == [
        "compiling: 2 files so far (a whole kernel has 1,200)",
        "compiling: 1,001 files so far (a whole kernel has 1,200)",
    ]


def test_the_log_of_the_build_before_is_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "builder" / "work" / "build.log"
    path.parent.mkdir(parents=True)
    path.write_text("make\n  CC      a.o\n")
    os.utime(path, (1, 1))
    told: list[str] = []
    BuildProgress(tmp_path, 0, told.append, None)()
    assert told == []
    path.write_text("make\n  CC      a.o\n")
    os.utime(path, (2**33, 2**33))
    BuildProgress(tmp_path, 0, told.append, None)()
    assert told == ["compiling: 1 files so far"]


def test_a_request_to_stop_is_passed_on(tmp_path: Path) -> None:
    assert BuildProgress(None, 0, print, lambda: True)()
    assert not BuildProgress(None, 0, print, lambda: False)()
    assert not BuildProgress(tmp_path / "nowhere", 0, print, None)()
