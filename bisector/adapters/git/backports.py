"""Known fixes (`--with-fix`): which commit mends what an earlier one broke, as kernel commits say themselves.

A fix is put on a commit that has the guilty commit behind it and the fix not (`KernelTrees.tree`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from bisector.adapters.system.command import CompletedCommand, run_command
from bisector.errors import RequestError
from bisector.ports import Fix

_TRAILER = re.compile(r"^Fixes:\s*([0-9a-f]{7,40})\b", re.MULTILINE | re.IGNORECASE)
"""Documentation/process/submitting-patches.rst, 'Describe your changes'."""


def find_fix(repository: Path, said: str) -> Fix:
    """Return a fix named as REV, whose message says what it fixes, or as REV:GUILTY.

    Raises RequestError for a commit that is not there or is a merge, and where nothing says what it fixes.
    """
    rev, colon, named = said.partition(":")
    sha = _commit(repository, rev)
    if sha is None:
        raise RequestError(f"--with-fix {said}: '{rev}' is not a commit of {repository}")
    parents = _git(repository, "rev-list", "--parents", "-n1", sha).split()[1:]
    if len(parents) != 1:
        what = "a merge" if parents else "a root"
        raise RequestError(
            f"--with-fix {said}: {sha[:12]} is {what}, not a single change",
            cure="name the commit that it brought in",
        )
    names = [named] if colon else _TRAILER.findall(_git(repository, "log", "-1", "--format=%B", sha))
    if not names:
        raise RequestError(
            f"--with-fix {said}: the message of {sha[:12]} does not say what it fixes (no 'Fixes:' line)",
            cure=f"name the commit that it mends: --with-fix {rev}:GUILTY",
        )
    guilty = []
    for name in names:
        found = _commit(repository, name)
        if found is None:
            raise RequestError(
                f"--with-fix {said}: '{name}', which it fixes, is not a commit of {repository}",
                cure=f"name the commit that it mends: --with-fix {rev}:GUILTY",
            )
        guilty.append(found)
    return Fix(sha, tuple(guilty))


def needed(repository: Path, sha: str, fixes: Sequence[Fix]) -> tuple[Fix, ...]:
    """Return those that a commit needs: a guilty commit is in it, and the fix is not."""
    return tuple(
        fix
        for fix in fixes
        if any(_behind(repository, guilty, sha) for guilty in fix.guilty)
        and not _behind(repository, fix.sha, sha)
    )


def write_patch(repository: Path, fix: Fix, target: Path) -> None:
    """Write the change that a fix makes, as git applies it, byte by byte."""
    what = ("-p", "--binary", "--full-index", f"--output={target}")
    _git(repository, "diff-tree", *what, f"{fix.sha}^", fix.sha)


def _commit(repository: Path, rev: str) -> str | None:
    if not rev or rev.startswith("-"):
        return None
    done = _run(repository, "rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}")
    return done.output.strip() if done.code == 0 else None


def _behind(repository: Path, ancestor: str, sha: str) -> bool:
    return _run(repository, "merge-base", "--is-ancestor", ancestor, sha).code == 0


def _git(repository: Path, *arguments: str) -> str:
    return _run(repository, *arguments, check=True).output


def _run(repository: Path, *arguments: str, check: bool = False) -> CompletedCommand:
    command = ["git", "-c", f"safe.directory={repository}", "-C", str(repository), *arguments]
    return run_command(command, env={"LC_ALL": "C.UTF-8"}, check=check)
