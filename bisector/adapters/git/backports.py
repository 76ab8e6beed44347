"""Known fixes (`--with-fix`): which commit mends what an earlier one broke, as kernel commits say themselves.

A fix is put on a commit that has the guilty commit behind it and the fix not (`KernelTrees.tree`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from bisector.adapters.git.repository import Repository
from bisector.errors import RequestError
from bisector.ports import Fix

_TRAILER = re.compile(r"^Fixes:\s*([0-9a-f]{7,40})\b", re.MULTILINE | re.IGNORECASE)
"""Documentation/process/submitting-patches.rst, 'Describe your changes'."""


def find_fix(repository: Path, text: str) -> Fix:
    """Return a fix named as REV, whose message says what it fixes, or as REV:GUILTY.

    Raises RequestError for a commit that is not there or is a merge, and where nothing says what it fixes.
    """
    rev, colon, named = text.partition(":")
    repo = Repository(repository)
    sha = repo.resolve(rev)
    if sha is None:
        raise RequestError(
            f"--with-fix {text}: '{rev}' is not a commit of {repository}",
            cure="git fetch it first, or name it by its full id",
        )
    parents = repo.run("rev-list", "--parents", "-n1", sha, "--").output.split()[1:]
    if len(parents) != 1:
        what = "a merge" if parents else "a root"
        raise RequestError(
            f"--with-fix {text}: {sha[:12]} is {what}, not a single change",
            cure="name the commit that it brought in",
        )
    names = [named] if colon else _TRAILER.findall(repo.run("log", "-1", "--format=%B", sha, "--").output)
    if not names:
        raise RequestError(
            f"--with-fix {text}: the message of {sha[:12]} does not say what it fixes (no 'Fixes:' line)",
            cure=f"name the commit that it mends: --with-fix {rev}:GUILTY",
        )
    guilty = []
    for name in names:
        found = repo.resolve(name)
        if found is None:
            raise RequestError(
                f"--with-fix {text}: '{name}', which it fixes, is not a commit of {repository}",
                cure=f"name the commit that it mends: --with-fix {rev}:GUILTY",
            )
        guilty.append(found)
    return Fix(sha, tuple(guilty))


def find_needed(repository: Path, sha: str, fixes: Sequence[Fix]) -> tuple[Fix, ...]:
    """Return the fixes that a commit (full id) needs: a guilty commit is in it, and the fix is not."""
    repo = Repository(repository)
    return tuple(
        fix
        for fix in fixes
        if any(_is_ancestor(repo, guilty, sha) for guilty in fix.guilty)
        and not _is_ancestor(repo, fix.sha, sha)
    )


def write_patch(repository: Path, fix: Fix, target: Path) -> None:
    """Write the change that a fix makes, as git applies it, byte by byte."""
    options = ("-p", "--binary", "--full-index", f"--output={target}")
    Repository(repository).run("diff-tree", *options, f"{fix.sha}^", fix.sha)


def _is_ancestor(repository: Repository, ancestor: str, sha: str) -> bool:
    return repository.run("merge-base", "--is-ancestor", ancestor, sha, silent_codes=(1,)).code == 0
