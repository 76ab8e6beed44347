"""What is told while a kernel compiles, and that a request to stop is passed on."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from bisector.adapters.build import build_progress
from bisector.adapters.build.build_progress import BuildProgress
from bisector.model.compiling import Compiling


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
    progress = BuildProgress(tmp_path, "toy-0", "process 1", 1200, told.append, None)
    assert not progress()
    no_file = "  ASN.1   e.asn1.[ch]\necho   CC  f.o\n"
    path.write_text(f"make\n  CC      a.o\n  LD      b.o\n  AS      c.o\n  HOSTCC  d\n{no_file}")
    assert not progress()
    assert not progress()
    path.write_text("make\n" + "  CC      x.o\n" * 1080)
    assert not progress()
    assert told == ["compiling: 3 of about 1,200 files", "compiling: 1,080 of about 1,200 files"]
    assert [text.share for text in told if isinstance(text, Compiling)] == [3 / 1200, 0.9]
    path.write_text("make\n" + "  CC      x.o\n" * 1200)
    assert not progress()
    assert told.pop() == "compiling: 1,200 of about 1,200 files"
    path.write_text("make\n" + f"  CC      {'x' * 60}.o\n" * 1201)
    assert not progress()
    assert told[2] == "compiling: 1,201 files so far (a whole kernel has 1,200)"
    assert not isinstance(told[2], Compiling)
    path.write_text("make\n  CC      a.o\n")
    assert not progress()
    assert len(told) == 3, "fewer files than before are no progress"


def test_of_two_logs_only_one_is_this_builds(tmp_path: Path) -> None:
    work = tmp_path / "builder" / "work"
    (work / "tuxmake").mkdir(parents=True)
    (tmp_path / "builder" / "lock.holder").write_text("me")
    (work / "build.log").write_text("  CC      a.o\n")
    (work / "tuxmake" / "build.log").write_text("  CC      a.o\n  CC      b.o\n")
    told: list[str] = []
    BuildProgress(tmp_path, "toy-0", "me", 0, told.append, None)()
    assert told == ["compiling: 2 files so far"]


def test_a_log_of_megabytes_is_read_every_few_seconds_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "builder" / "work" / "build.log"
    path.parent.mkdir(parents=True)
    (tmp_path / "builder" / "lock.holder").write_text("me")
    now, told = [0.0], list[str]()
    monkeypatch.setattr(build_progress, "_REPORT_SECONDS", 5.0)
    monkeypatch.setattr(build_progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    progress = BuildProgress(tmp_path, "toy-0", "me", 0, told.append, None)
    for now[0] in range(1, 13):  # a file more each second
        path.write_text("  CC      a.o\n" * int(now[0]))
        progress()
    assert told == ["compiling: 5 files so far", "compiling: 10 files so far"]


def test_of_a_build_in_a_folder_with_objects_nobody_knows_how_much_is_done(tmp_path: Path) -> None:
    path = tmp_path / "builder" / "work" / "build.log"
    path.parent.mkdir(parents=True)
    (tmp_path / "builder" / "out" / "toy-0").mkdir(parents=True)
    (tmp_path / "builder" / "lock.holder").write_text("me")
    path.write_text("make\n  CC      a.o\n  CC      b.o\n")
    told: list[str] = []
    BuildProgress(tmp_path, "toy-0", "me", 1200, told.append, None)()
    BuildProgress(tmp_path, "toy-1", "me", 1200, told.append, None)()
    assert told == [
        "compiling: 2 files so far (a whole kernel has 1,200)",
        "compiling: 2 of about 1,200 files",
    ]
    assert [isinstance(text, Compiling) for text in told] == [False, True]


def test_the_log_of_another_build_is_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "builder" / "work" / "build.log"
    path.parent.mkdir(parents=True)
    path.write_text("make\n  CC      a.o\n")
    told: list[str] = []
    BuildProgress(tmp_path, "toy-0", "process 1, since 2", 0, told.append, None)()
    (tmp_path / "builder" / "lock.holder").write_text("process 1, since 1")
    BuildProgress(tmp_path, "toy-0", "process 1, since 2", 0, told.append, None)()
    assert told == []
    (tmp_path / "builder" / "lock.holder").write_text("process 1, since 2")
    BuildProgress(tmp_path, "toy-0", "process 1, since 2", 0, told.append, None)()
    assert told == ["compiling: 1 files so far"]


def test_a_request_to_stop_is_passed_on(tmp_path: Path) -> None:
    assert BuildProgress(None, "toy-0", "", 0, print, lambda: True)()
    assert not BuildProgress(None, "toy-0", "", 0, print, lambda: False)()
    assert not BuildProgress(tmp_path / "nowhere", "toy-0", "", 0, print, None)()


def test_what_a_build_puts_in_place_of_its_log_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "builder" / "work" / "build.log"
    path.parent.mkdir(parents=True)
    secret = tmp_path / "elsewhere"
    secret.write_text("make\n  CC      a.o\n")
    (tmp_path / "builder" / "lock.holder").write_text("me")
    told: list[str] = []
    path.symlink_to(secret)
    BuildProgress(tmp_path, "toy-0", "me", 0, told.append, None)()
    path.unlink()
    os.mkfifo(path)  # which nobody writes to: to open it would wait for ever
    BuildProgress(tmp_path, "toy-0", "me", 0, told.append, None)()
    both = os.open(path, os.O_RDWR)
    os.write(both, b"  CC      a.o\n")
    BuildProgress(tmp_path, "toy-0", "me", 0, told.append, None)()
    os.close(both)
    path.unlink()
    path.symlink_to("/dev/zero")
    BuildProgress(tmp_path, "toy-0", "me", 0, told.append, None)()
    assert told == []
