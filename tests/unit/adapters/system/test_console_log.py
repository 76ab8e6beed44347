"""A console's log is bounded, has its beginning and its end, and is read on where virtlogd renames it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from bisector.adapters.system import console_log
from bisector.adapters.system.console_log import ConsoleLog, is_cut

HEAD, TAIL = 2000, 6000


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_log, "HEAD_BYTES", HEAD)
    monkeypatch.setattr(console_log, "TAIL_BYTES", TAIL)
    monkeypatch.setattr(console_log, "_CUT_BYTES", 2 * HEAD)


@pytest.fixture
def log(tmp_path: Path) -> ConsoleLog:
    one = ConsoleLog(tmp_path / "boot" / "console.log")
    one.begin()
    return one


class Virtlogd:
    """Appends as virtlogd does: a full file becomes .0, that one .1, and the fourth is removed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, data: bytes) -> None:
        for line in data.splitlines(keepends=True):
            if self.path.exists() and self.path.stat().st_size + len(line) > HEAD:
                for number in (2, 1, 0):
                    old = self.path.with_name(f"{self.path.name}.{number - 1}") if number else self.path
                    if old.exists():
                        old.rename(self.path.with_name(f"{self.path.name}.{number}"))
            with self.path.open("ab") as file:
                file.write(line)


def _flood(lines: int, start: int = 0) -> bytes:
    return b"".join(b"line %06d\n" % number for number in range(start, start + lines))


def _files(log: ConsoleLog) -> list[str]:
    return sorted(path.name for path in log.path.parent.iterdir())


def test_a_console_that_says_little_is_one_file_that_nobody_touched(log: ConsoleLog) -> None:
    Virtlogd(log.path).write(b"Linux version 6.1\npanic\n")
    assert log.end(6) == b"panic\n"
    inode = log.path.stat().st_ino
    log.join()
    assert log.path.read_bytes() == b"Linux version 6.1\npanic\n"
    assert log.path.stat().st_ino == inode
    assert _files(log) == ["console.log"]


def test_parts_are_joined_where_nothing_is_missing(log: ConsoleLog) -> None:
    said = _flood(400)  # 4800 bytes: three parts
    Virtlogd(log.path).write(said)
    assert len(_files(log)) == 4
    log.join()
    assert log.path.read_bytes() == said
    assert not is_cut(log.path)
    assert not is_cut(log.path.with_name("none"))
    assert _files(log) == ["console.log"]


@pytest.mark.parametrize("writer", ["virtlogd", "qemu", "here"])
def test_of_a_flood_beginning_and_end_are_kept(
    log: ConsoleLog, writer: str, caplog: pytest.LogCaptureFixture
) -> None:
    most = 0
    virtlogd = Virtlogd(log.path)
    for number in range(0, 20_000, 100):
        said = _flood(100, number)
        if writer == "virtlogd":
            virtlogd.write(said)
        elif writer == "qemu":  # stdio_handler = "file": nobody renames it
            with log.path.open("ab") as file:
                file.write(said)
        else:
            for line in said.decode().splitlines():
                log.append(f"{line}\n".encode())
        assert log.end(12) == said[-12:]
        most = max(most, sum(path.stat().st_size for path in log.path.parent.iterdir()))
    assert most < 3 * (HEAD + TAIL)
    with caplog.at_level(logging.WARNING):
        log.join()
    assert "more was printed than is kept" in caplog.text
    kept = log.path.read_bytes()
    assert kept.startswith(b"line 000000\nline 000001\n")
    assert kept.endswith(b"line 019998\nline 019999\n")
    assert b"[perfbisect: more was printed than is kept" in kept
    assert len(kept) < HEAD + TAIL + 200
    assert is_cut(log.path)
    assert _files(log) == ["console.log"]


def test_a_flood_that_nobody_looked_at_is_bounded_at_the_end(log: ConsoleLog) -> None:
    log.path.write_bytes(_flood(100_000))
    log.join()
    assert log.path.stat().st_size < HEAD + TAIL + 200
    assert log.path.read_bytes().startswith(b"line 000000\n")


def test_the_end_reaches_back_into_the_part_that_has_just_become_full(log: ConsoleLog) -> None:
    virtlogd = Virtlogd(log.path)
    virtlogd.write(_flood(166) + b"Kernel panic - not syncing: x\n" + b"---[ end\n")
    assert log.path.stat().st_size < 100
    assert b"line 000165\n" in log.end(1000)
    assert log.end(1000).endswith(b"Kernel panic - not syncing: x\n---[ end\n")


def test_nothing_is_read_twice_or_lost_where_the_file_is_renamed(log: ConsoleLog) -> None:
    virtlogd = Virtlogd(log.path)
    read = b""
    for number in range(0, 3000, 50):
        virtlogd.write(_flood(50, number))
        read += log.read_new()
    virtlogd.write(_flood(200, 3000))  # the new file is longer than what was read of the old one
    read += log.read_new()
    assert read == _flood(3200)
    assert log.read_new() == b""


def test_what_was_read_of_a_short_file_says_nothing_of_the_next(log: ConsoleLog) -> None:
    virtlogd = Virtlogd(log.path)
    virtlogd.write(_flood(10))
    read = log.read_new()
    virtlogd.write(_flood(250, 10))
    assert read + log.read_new() == _flood(260)


def test_without_a_log_there_is_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = ConsoleLog(tmp_path / "none")
    assert (log.end(9), log.read_new()) == (b"", b"")
    log.join()
    assert "stays as it is" in caplog.text
