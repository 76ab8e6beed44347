"""Which functions a commit changes, read from the repository without checking anything out."""

from __future__ import annotations

from pathlib import Path

import git

from bisector.errors import InfrastructureError
from bisector.linux.functions import changed_lines, functions_at

_SOURCES = ("*.c", "*.h", "*.S")
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""git's name of the tree that holds nothing: what a root commit is compared with."""


def touched_functions(repository: Path, sha: str) -> frozenset[str]:
    """Return the functions of C sources that a commit (full id) changes, adds or removes.

    A merge is compared with its first parent. Raises InfrastructureError where git cannot read it.
    """
    repo = git.Repo(repository, search_parent_directories=True)
    try:
        parents = repo.git.rev_list("--parents", "-n1", sha).split()[1:]
        base = parents[0] if parents else _EMPTY_TREE
        names = repo.git.diff("--name-status", "--no-renames", "-z", base, sha, "--", *_SOURCES).split("\0")
        found: set[str] = set()
        for status, path in zip(names[::2], names[1::2], strict=False):
            diff = repo.git.diff("-U0", "--no-renames", "--no-color", "--no-ext-diff", base, sha, "--", path)
            old, new = changed_lines(diff)
            if status != "A":
                found |= functions_at(_text(repo, base, path), old)
            if status != "D":
                found |= functions_at(_text(repo, sha, path), new)
    except git.GitCommandError as error:
        raise InfrastructureError(
            f"git cannot tell what {sha[:12]} changes", details=str(error.stderr).strip()
        ) from error
    return frozenset(found)


def _text(repo: git.Repo, tree: str, path: str) -> str:
    return str(repo.git.show(f"{tree}:{path}", strip_newline_in_stdout=False))
