"""Whether a commit is reverted or mended in later history, by what commits say of themselves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from bisector.adapters.git.repository import Repository

_SHORTEST = 12
"""Hexadecimal digits of a commit in 'Fixes:' (Documentation/process/submitting-patches.rst)."""
_SECONDS = 300.0
"""Timeout of the search for a fix: enough for a year of Linux's history on a cold disk."""


class UpstreamFix(NamedTuple):
    """A later commit that reverts another, or names it in 'Fixes:', which shows nothing of a level."""

    commit: str
    subject: str
    is_revert: bool


def find_upstream_fix(repository: Path, sha: str) -> UpstreamFix | None:
    """Return the first commit of any branch that reverts another, else the first with it in 'Fixes:'."""
    revert = f"this reverts commit {sha[:_SHORTEST]}"
    text = Repository(
        repository
    ).run(
        "log",
        "-z",
        "--branches",
        "--remotes",
        "--glob=refs/perfbisect",  # what nights have fetched
        "--reverse",
        "--regexp-ignore-case",
        "--extended-regexp",
        f"--grep=^fixes:[ \t]*{sha[:_SHORTEST]}",
        f"--grep=^{revert}",
        "--encoding=UTF-8",
        "--format=%H%n%s%n%B",
        f"^{sha}",
        timeout=_SECONDS,
    )
    found = []
    for commit in filter(None, text.output.split("\0")):
        shown = commit.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        name, subject, message = shown.split("\n", 2)
        is_revert = re.search(f"^{revert}", message, re.MULTILINE | re.IGNORECASE) is not None
        found.append(UpstreamFix(name, subject, is_revert))
    return next((one for one in found if one.is_revert), found[0] if found else None)


def has_commit(repository: Path, tip: str, sha: str) -> bool:
    """Return whether a commit is in a tip's history. Raises PerfbisectError: git does not know one."""
    done = Repository(repository).run("merge-base", "--is-ancestor", sha, tip, silent_codes=(1,))
    return done.code == 0
