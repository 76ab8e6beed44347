"""Subject, author and date of commits. Anybody may have written them, so they are bounded."""

from __future__ import annotations

import re
from collections.abc import Container

from bisector.errors import InfrastructureError
from bisector.model.printable import MAX_SUBJECT_CHARACTERS, cut
from bisector.ports import CommitInfo
from bisector.schemas.ranges import LAST_TIME

INFO_FORMAT = "%H%x00%s%x00%an <%ae>%x00%at"

_FIRST_TIME = -1e9
"""1938: no commit is older, and calendars begin with the year 1."""


def parse_infos(output: str, wanted: Container[str]) -> dict[str, CommitInfo]:
    """Return the commits of an output in INFO_FORMAT, one a line, by id.

    wanted: ids. Raises InfrastructureError for a line that is not of one.
    """
    text = output.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    found = {}
    for line in text.rstrip("\n").split("\n"):
        sha, *words = line.split("\0")
        if sha not in wanted or len(words) != 3:
            raise InfrastructureError(f"git tells of a commit {line[:80]!r}", cure="git fsck")
        *texts, when = words
        subject, author = (cut(one, MAX_SUBJECT_CHARACTERS) for one in texts)
        found[sha] = CommitInfo(sha, subject, author, _time(when))
    return found


def _time(text: str) -> float:
    """Return an author's time; 0 where git gives none, for a broken line, or for one that no calendar has."""
    seconds = float(text) if re.fullmatch(r"-?\d{1,15}", text, re.ASCII) else 0.0
    return seconds if _FIRST_TIME <= seconds <= LAST_TIME else 0.0
