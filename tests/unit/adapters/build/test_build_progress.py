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
    (tmp_path / "builder" / "lock.holder").write_text("process 1")
    progress = BuildProgress(tmp_path, "process 1", 1200, told.append, None)
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


def test_the_log_of_another_build_is_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "builder" / "work" / "build.log"
    path.parent.mkdir(parents=True)
    path.write_text("make\n  CC      a.o\n")
    told: list[str] = []
    BuildProgress(tmp_path, "process 1, since 2", 0, told.append, None)()
    (tmp_path / "builder" / "lock.holder").write_text("process 1, since 1")
    BuildProgress(tmp_path, "process 1, since 2", 0, told.append, None)()
    assert told == []
    (tmp_path / "builder" / "lock.holder").write_text("process 1, since 2")
    BuildProgress(tmp_path, "process 1, since 2", 0, told.append, None)()
    assert told == ["compiling: 1 files so far"]


def test_a_request_to_stop_is_passed_on(tmp_path: Path) -> None:
    assert BuildProgress(None, "", 0, print, lambda: True)()
    assert not BuildProgress(None, "", 0, print, lambda: False)()
    assert not BuildProgress(tmp_path / "nowhere", "", 0, print, None)()


def test_what_a_build_puts_in_place_of_its_log_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "builder" / "work" / "build.log"
    path.parent.mkdir(parents=True)
    secret = tmp_path / "elsewhere"
    secret.write_text("make\n  CC      a.o\n")
    (tmp_path / "builder" / "lock.holder").write_text("me")
    told: list[str] = []
    path.symlink_to(secret)
    BuildProgress(tmp_path, "me", 0, told.append, None)()
    path.unlink()
    os.mkfifo(path)  # which nobody writes to: to open it would wait for ever
    BuildProgress(tmp_path, "me", 0, told.append, None)()
    path.unlink()
    path.symlink_to("/dev/zero")
    BuildProgress(tmp_path, "me", 0, told.append, None)()
    assert told == []
