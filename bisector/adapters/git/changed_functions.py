"""The functions that a commit changes, read from the repository without a checkout."""

from __future__ import annotations

from pathlib import Path

from bisector.adapters.git.repository import Repository, find_repository
from bisector.linux.functions import changed_lines, functions_at

_SOURCES = ("*.c", "*.h", "*.S")
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""git's name of the tree that holds nothing: what a root commit is compared with."""


def touched_functions(repository: Path, sha: str) -> frozenset[str]:
    """Return the functions of C sources that a commit (full id) changes, adds or removes.

    A merge is compared with its first parent. Raises InfrastructureError where git cannot read it.
    """
    repo = Repository(find_repository(repository).top)  # paths are relative to it
    parents = repo.run("rev-list", "--parents", "-n1", sha, "--").output.split()[1:]
    base = parents[0] if parents else _EMPTY_TREE
    options = ("--name-status", "--no-renames", "-z", base, sha, "--", *_SOURCES)
    names = repo.run("diff", *options).output.split("\0")
    found: set[str] = set()
    for status, path in zip(names[::2], names[1::2], strict=False):
        diff = ("-U0", "--no-renames", "--no-color")
        old, new = changed_lines(repo.run("diff", *diff, base, sha, "--", path).output)
        if status != "A":
            found |= functions_at(_read_text(repo, base, path), old)
        if status != "D":
            found |= functions_at(_read_text(repo, sha, path), new)
    return frozenset(found)


def _read_text(repo: Repository, tree: str, path: str) -> str:
    return repo.run("cat-file", "blob", f"{tree}:{path}").output
