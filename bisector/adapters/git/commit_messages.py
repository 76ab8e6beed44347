"""Messages of commits that name other commits: reverts within a range, and fixes that came after it."""

from __future__ import annotations

import logging
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


@dataclass(frozen=True, slots=True)
class CommitMessages:
    """inside: those of a range that revert a commit; later: of commits outside it that name an id."""

    inside: tuple[str, ...]
    later: tuple[str, ...]


def read_messages(repository: Path, good: str, bad: str) -> CommitMessages:
    """Read the messages that good..bad, and whatever came after it on any branch, has for `commit_prior`.

    good, bad: full ids. Raises InfrastructureError where the range itself cannot be read.
    """
    repo = Repository(repository)
    until = int(repo.run("log", "-1", "--format=%ct", bad, "--").output) + YEARS_LATER * _SECONDS_A_YEAR
    inside = repo.run("log", "-z", "--format=%B", "--grep=This reverts commit", bad, f"^{good}", "--").output
    form = ("-z", "--format=%B", "--extended-regexp", f"--grep={_AN_ID}", f"--until={until}")
    try:
        later = repo.run("log", "--all", *form, f"^{bad}", "--").output
    except PerfbisectError as error:  # another branch is broken, which is nothing to this search
        log.info("no messages of later commits are read: %s", error.message)
        later = ""
    return CommitMessages(*(tuple(filter(None, text.split("\0"))) for text in (inside, later)))
