"""Where output goes and where commands start: closed and full streams, readers that end, odd surroundings."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bad_input.harness import REPOSITORY, check_answer

PROGRAM = f"{sys.executable} -c 'from bisector.interfaces.cli import main; main()'"


def shell(line: str, place: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which $P is perfbisect."""
    return subprocess.run(
        ["bash", "-c", line.replace("$P", PROGRAM)],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("$P list >&-", 1, "standard output is closed"),
        ("$P --help >&-", 1, "standard output is closed"),
        ("$P list > /dev/full", 3, "the output cannot be written: No space left on device"),
        ("$P show here-open --json > /dev/full", 3, "the output cannot be written: No space left on device"),
        ("$P --help > /dev/full", 3, "the output cannot be written: No space left on device"),
        (
            "$P report here-open --output /dev/full",
            3,
            "/dev/full: cannot be written: No space left on device",
        ),
        ("$P report here-open --output empty", 1, "empty: cannot be written"),
        ("$P report here-open --output absent/report.txt", 1, "absent/report.txt: cannot be written"),
        ("$P compare old.txt - <&-", 1, "standard input is closed"),
        ("head -c 9 /dev/zero | tr '\\0' '\\377' | $P compare old.txt -", 1, "stdin: this is not text"),
    ],
)
def test_a_stream_that_cannot_be_used(line: str, code: int, says: str, place: Path) -> None:
    done = shell(line, place)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    check_answer(done.stderr, [says])


@pytest.mark.parametrize("line", ["$P list | true", "$P simulate --schema | head -1", "$P --help | head -1"])
def test_a_reader_that_ends_early_is_no_error(line: str, place: Path) -> None:
    done = shell(f"{line}; exit ${{PIPESTATUS[0]}}", place)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("line", ["$P report nope 2>&-", "$P report nope 2>/dev/full"])
def test_an_error_that_cannot_be_told_keeps_its_code(line: str, place: Path) -> None:
    assert shell(line, place).returncode == 1


def test_a_folder_that_was_removed_is_no_defect(place: Path) -> None:
    done = shell("mkdir gone; cd gone; rmdir ../gone; $P start --good v1 --bad v5 --workload x", place)
    assert done.returncode == 1
    check_answer(done.stderr, ["the working folder", "change to a folder that exists"])


def test_without_git_a_command_that_needs_it_says_so(place: Path) -> None:
    (place / "bin").mkdir()
    done = shell(
        f"PATH={shlex.quote(str(place / 'bin'))} $P plan --good v1 --bad v5 --workload pipe-test", place
    )
    assert done.returncode in (1, 3)
    check_answer(done.stderr, ["git"])


@pytest.mark.parametrize("locale", ["C", "POSIX", "nonsense"])
def test_any_locale_will_do(locale: str, place: Path) -> None:
    (place / "größe.txt").write_text("1\n2\n")
    done = shell(
        f"env LC_ALL={locale} $P compare größe.txt old.txt; env LC_ALL={locale} $P report näpe", place
    )
    assert done.returncode == 1
    assert "gr" in done.stdout and "no bisection" in done.stderr
    check_answer(done.stderr)
