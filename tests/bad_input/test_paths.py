"""Every path that a command takes, with what is no file or no folder there, cannot be read, or has no room.

The rows are made from the commands: a path option that is added is tried without a line here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bad_input.harness import Row, check_row, each_row
from tests.bad_input.test_options import every_option, row

BESIDE = {
    ("profile", "--repo"): ["--commit", "v3"],
    ("simulate", "--repo"): ["--good", "v1", "--bad", "v5"],
    ("kernel explain", "--repo"): ["v3"],
    ("workload run", "--repo"): ["--rev", "v3"],
    ("workload run", "--apply"): ["--rev", "v3", "--repo", "linux"],
}
"""What a path has no effect without."""

PLACES = {
    "missing": "absent/deep",
    "a file": "old.txt",
    "a folder": "linux",
    "an empty folder": "empty",
    "a loop": "loop",
    "unreadable": "/proc/self/mem",  # a regular file whose first byte cannot be read, even by root
    "full": "/dev/full",
    "below a file": "old.txt/x",
}

FINE = {
    "--flame": {"a file"},
    "--html": {"a file"},
    "--in": {"missing", "a folder", "an empty folder"},
    "--keep": {"missing", "a folder", "an empty folder"},
    "--output": {"a file"},
    "--repo": {"a folder"},
    "--report": {"a file", "full"},
}
"""What an option takes; everything else is refused. --report is written after checks that have told how far
they are, so what a full disk says does not stand alone."""

ASKS_ANSIBLE = {"a file", "a folder", "an empty folder"}
"""Of --lab: tried with one command, for each takes seconds."""

OUTPUTS = ("--flame", "--html", "--output")


def paths() -> Iterator[Row]:
    for command, option, parameter in every_option():
        if not command or "Path" not in str(parameter.type_descriptor.annotation):
            continue
        for kind, value in PLACES.items():
            seen = option == "--lab" and kind in ASKS_ANSIBLE and command != "lab list"
            if kind not in FINE.get(option, set()) and not seen:
                made = row(command, option, kind, value, [])
                beside = BESIDE.get((command, option), [])
                full = kind == "full" and option in OUTPUTS and command != "export"
                code = 3 if full else 1  # a full disk is no wrong request
                yield Row(made.name, [*made.arguments, *beside], [], setup=make_loop, code=code)


def make_loop(place: Path) -> None:
    (place / "loop").symlink_to("loop")


ROWS = list(paths())


@each_row(ROWS)
def test_a_path_is_refused(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_row(row, place, capsys, monkeypatch)
