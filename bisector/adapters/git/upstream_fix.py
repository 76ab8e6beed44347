"""Whether a commit is mended in later history, by what commits say of themselves."""

from __future__ import annotations

from pathlib import Path

from bisector.adapters.git.repository import Repository

_SHORTEST = 12
"""Hexadecimal digits of a commit in 'Fixes:' (Documentation/process/submitting-patches.rst)."""
_SECONDS = 300.0
"""For a year of Linux's history on a cold disk."""


def find_upstream_fix(repository: Path, sha: str) -> tuple[str, str] | None:
    """Return the first commit of any branch that fixes or reverts another: full id and subject; or None."""
    text = Repository(repository).run(
        "log",
        "--branches",
        "--remotes",
        "--reverse",
        "--regexp-ignore-case",
        "--extended-regexp",
        f"--grep=^fixes:[ \t]*{sha[:_SHORTEST]}",
        f"--grep=^this reverts commit {sha[:_SHORTEST]}",
        "--encoding=UTF-8",
        "--format=%H%x00%s",
        f"^{sha}",
        timeout=_SECONDS,
    )
    first = text.output.partition("\n")[0].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    found, _, subject = first.partition("\0")
    return (found, subject) if found else None
