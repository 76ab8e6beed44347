"""The commits between which an alert's level moved, from the repository."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bisector.errors import PerfbisectError
from bisector.model.alerts import MAX_NAME_CHARACTERS
from bisector.model.printable import cut

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.model.alerts import Alert
    from bisector.ports import Source

_NAMED = ("last_good", "first_bad", "tip")


def describe_range(wiring: Wiring, alert: Alert) -> dict[str, Any]:
    """Return 'commits', after the last good one up to the first bad one, and the subjects of the named ones.

    Nothing is fetched. What the repository of this machine does not have is None, a subject ''.
    """
    ids = {name: getattr(alert, name) for name in _NAMED}
    try:
        source = wiring.source(alert.repo)
    except (PerfbisectError, OSError):
        return {"commits": None, "subjects": dict.fromkeys(ids, "")}
    return {
        "commits": _count(source, alert),
        "subjects": {name: _subject(source, sha) if sha else "" for name, sha in ids.items()},
    }


def subject_of(source: Source, sha: str) -> str:
    """Return the subject of a commit, cut. Raises what `Source.infos` raises."""
    (info,) = source.infos([sha])
    return cut(info.subject, MAX_NAME_CHARACTERS)


def _count(source: Source, alert: Alert) -> int | None:
    try:
        return sum(source.graph(alert.last_good, alert.first_bad).candidate)
    except (PerfbisectError, OSError):  # the last good one may no longer be an ancestor: a branch was forced
        return None


def _subject(source: Source, sha: str) -> str:
    try:
        return subject_of(source, sha)
    except (PerfbisectError, OSError):
        return ""
