"""What the repository says of the commits between which an alert's level moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bisector.errors import PerfbisectError
from bisector.model.alerts import MAX_NAME_CHARACTERS
from bisector.model.printable import cut

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.model.alerts import Alert

_NAMED = ("last_good", "first_bad", "tip")


def describe_range(wiring: Wiring, alert: Alert) -> dict[str, Any]:
    """Return 'commits', after the last good one up to the first bad one, and the subjects of the named ones.

    Nothing is fetched. What the repository of this machine does not have is None, a subject ''.
    """
    ids = {name: getattr(alert, name) for name in _NAMED}
    return {
        "commits": _count(wiring, alert),
        "subjects": {name: _subject(wiring, alert.repo, sha) if sha else "" for name, sha in ids.items()},
    }


def _count(wiring: Wiring, alert: Alert) -> int | None:
    try:
        return sum(wiring.source(alert.repo).graph(alert.last_good, alert.first_bad).candidate)
    except (PerfbisectError, OSError):  # the last good one may no longer be an ancestor: a branch was forced
        return None


def _subject(wiring: Wiring, repo: str, sha: str) -> str:
    try:
        (info,) = wiring.source(repo).infos([sha])
    except (PerfbisectError, OSError):
        return ""
    return cut(info.subject, MAX_NAME_CHARACTERS)
