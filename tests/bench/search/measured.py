"""Rows of measurements, kept in one file as they come, each with the code that it was measured with.

A row is a dict with 'bench', 'cell', 'seed', 'code' and 'at' beside its numbers. 'code' is a fingerprint of
the source that decides the numbers, so that a stopped measurement is gone on with by equal code alone; 'at'
is the commit, for the reader.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
ROWS = ROOT / "build/bench-search/rows.jsonl"
PLANNER = ("bisector/model", "bisector/search", "bisector/stats")
"""What is measured: rows name the last commit that changed it."""
SIMULATION = ("bisector/simulation",)
"""What decides the numbers of a simulated search beside the planner."""
LAB = ("bisector/simulation/noise_model.py", "bisector/simulation/scenario.py")
"""What decides what a lab reads, whoever searches."""

Row = dict[str, Any]


@lru_cache
def source_of(paths: Sequence[str], root: Path = ROOT) -> str:
    """Return a fingerprint of source files, or of all in a folder."""
    digest = hashlib.sha256()
    for file in sorted(f for path in paths for f in _sources(root / path)):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def fingerprint(paths: Sequence[str], setting: object, root: Path = ROOT) -> str:
    """Return a fingerprint of source files and of the setting of a cell."""
    return hashlib.sha256((source_of(paths, root) + repr(setting)).encode()).hexdigest()[:12]


def _sources(path: Path) -> Iterator[Path]:
    return iter([path]) if path.is_file() else path.rglob("*.py")


@lru_cache
def commit_of(paths: Sequence[str], root: Path = ROOT) -> str:
    """Return the last commit that changed these paths, with '-dirty' where they differ from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words, "--", *paths], cwd=root, capture_output=True, text=True)
        return done.stdout.strip() if not done.returncode else "unknown"

    return git("log", "-1", "--abbrev=8", "--format=%h") + ("-dirty" if git("status", "--porcelain") else "")


@dataclass(frozen=True)
class RowFile:
    """A file of rows, one JSON object a line, in the order in which they were measured."""

    path: Path = ROWS

    def read(self) -> list[Row]:
        """Return all rows; a line that was cut off by an end in between is none."""
        if not self.path.exists():
            return []
        found = []
        for line in self.path.read_text().splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return found

    def append(self, rows: Iterable[Row]) -> None:
        """Add rows behind those that are there."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            if file.tell():
                file.seek(-1, 2)
                file.write(b"" if file.read() == b"\n" else b"\n")  # the last line was cut off
            for row in rows:
                file.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")
