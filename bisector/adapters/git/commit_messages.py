"""Messages of commits that name other commits: reverts within a range, and fixes that came after it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.git.repository import Repository
from bisector.errors import PerfbisectError

log = logging.getLogger(__name__)

YEARS_LATER = 3
"""Fixes are looked for so long after the bad end: most come in the next releases, and to read the messages of
all later commits would take minutes where the range is old."""

_SECONDS_A_YEAR = 31_557_600
_AN_ID = r"\b[0-9a-f]{7,40}\b"
_REVERTS = "This reverts commit"


@dataclass(frozen=True, slots=True)
class CommitMessages:
    """inside: those of a range that name a commit, by full id; later: of commits outside it that name one."""

    inside: Mapping[str, str]
    later: tuple[str, ...]


def read_messages(
    repository: Path, good: str, bad: str, *, mending: bool = False, later: bool = True
) -> CommitMessages:
    """Read the messages that good..bad, and whatever came after it on any branch, has for `commit_prior`.

    good, bad: full ids. mending: of the range all that name an id, not only reverts; later: whether to read
    what came after it. Raises InfrastructureError where the range itself cannot be read.
    """
    repo = Repository(repository)
    wanted = ("--extended-regexp", f"--grep={_AN_ID}") if mending else (f"--grep={_REVERTS}",)
    text = repo.run("log", "-z", "--format=%H%n%B", *wanted, bad, f"^{good}", "--").output
    parts = (part.partition("\n") for part in text.split("\0") if part)
    inside = {sha: message for sha, _, message in parts}
    return CommitMessages(inside, _read_later(repo, bad) if later else ())


def _read_later(repo: Repository, bad: str) -> tuple[str, ...]:
    until = int(repo.run("log", "-1", "--format=%ct", bad, "--").output) + YEARS_LATER * _SECONDS_A_YEAR
    form = ("-z", "--format=%B", "--extended-regexp", f"--grep={_AN_ID}", f"--until={until}")
    try:
        text = repo.run("log", "--all", *form, f"^{bad}", "--").output
    except PerfbisectError as error:  # another branch is broken, which is nothing to this search
        log.info("no messages of later commits are read: %s", error.message)
        text = ""
    return tuple(filter(None, text.split("\0")))
