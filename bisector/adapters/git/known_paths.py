"""Which paths a history has: at one of its ends, or in between, where a path came and went."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bisector.adapters.git.repository import Repository, find_repository

_LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}
"""A star in a path is a star."""


def unknown_paths(repository: Path, old: str, new: str, paths: Sequence[str]) -> list[str]:
    """Return those of the paths that neither end (full ids) has, and that no commit between them touches.

    A path with a slash at its end is a folder. Raises InfrastructureError.
    """
    repo = Repository(find_repository(repository).top)  # paths are relative to it
    known: set[str] = set()
    names = [path.rstrip("/") for path in paths]
    for end in (old, new):
        for line in repo.run("ls-tree", "-z", end, "--", *names).output.split("\0")[:-1]:
            about, _, name = line.partition("\t")
            known |= {name, f"{name}/"} if about.split()[1] == "tree" else {name}
    touched = ("rev-list", "-n1", new, f"^{old}", "--")
    missing = (path for path in paths if path not in known)
    return [path for path in missing if not repo.run(*touched, path, env=_LITERAL).output]
