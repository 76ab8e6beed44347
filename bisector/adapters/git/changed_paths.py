"""The paths that every commit of a range changes, from one git command over the whole range."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from bisector.adapters.git.repository import Repository, find_repository
from bisector.adapters.system.files import write_atomically
from bisector.errors import InfrastructureError
from bisector.linux.relevance import Change

Changes = dict[str, tuple[Change, ...]]

_LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}
"""A star in a path is a star."""


def read_changes(repository: Path, good: str, bad: str, keep_in: Path | None = None) -> Changes:
    """Return commit id -> paths it changes, for the commits of good..bad that are no merges.

    good, bad: full ids; keep_in: a folder in which the answer is kept. Raises InfrastructureError.
    """
    name = hashlib.sha256(json.dumps([str(repository.resolve()), good, bad]).encode()).hexdigest()[:24]
    file = keep_in / f"{name}.changes.gz" if keep_in else None
    if file is not None and file.exists():
        with contextlib.suppress(OSError, EOFError):  # cut short by a full disk
            return parse_log(gzip.decompress(file.read_bytes()).decode("utf-8", "surrogateescape"))
    options = ("--no-merges", "--name-status", "--no-renames", "--format=%x00%H", bad, f"^{good}", "--")
    log = Repository(repository).run("log", *options).output
    if file is not None:
        packed = gzip.compress(log.encode("utf-8", "surrogateescape"), compresslevel=1)
        with contextlib.suppress(InfrastructureError):  # where it cannot be kept, the next time is slower
            write_atomically(file, packed)
    return parse_log(log)


def parse_log(log: str) -> Changes:
    """Read `git log --name-status --format=%x00%H`."""
    found: Changes = {}
    interned: dict[str, Change] = {}
    for block in log.split("\0")[1:]:
        sha, *lines = block.split("\n")
        paths = []
        for line in lines:
            status, _, path = line.partition("\t")
            if path:
                if line not in interned:
                    interned[line] = Change(path, added=status[:1] in ("A", "T"))
                paths.append(interned[line])
        found[sha] = tuple(paths)
    return found


def unknown_paths(repository: Path, good: str, bad: str, paths: Sequence[str]) -> Iterator[str]:
    """Yield those of the paths that `bad` does not have, and that no commit of good..bad touches.

    A path with a slash at its end is a folder. Raises InfrastructureError.
    """
    repo = Repository(find_repository(repository).top)  # paths are relative to it
    known: set[str] = set()
    names = [path.rstrip("/") for path in paths]
    for line in repo.run("ls-tree", "-z", bad, "--", *names, env=_LITERAL).output.split("\0")[:-1]:
        about, _, name = line.partition("\t")
        known |= {name, f"{name}/"} if about.split()[1] == "tree" else {name}
    touched = ("rev-list", "-n1", bad, f"^{good}", "--")
    for path in paths:  # an unknown one costs a walk over the range: whoever asks may stop at the first
        if path not in known and not repo.run(*touched, path, env=_LITERAL).output:
            yield path
