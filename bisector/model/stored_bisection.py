"""A bisection as the store knows it, and what lists show of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Conclusion, Ending

REMOVING = "removing"
"""The status of a bisection whose removal has begun: it is over, and part of it may be gone already."""
ENDED = ("done", "cancelled", REMOVING)
"""Statuses after which a bisection is over."""
TO_EXECUTE = ("queued", "running")
"""Statuses of bisections that an executor works on."""
RESTING = ("new", "paused", "interrupted", "failed")
"""Statuses of bisections that nobody works on until they are resumed."""
OPEN = (*TO_EXECUTE, *RESTING)
"""Statuses of bisections that are not over."""

MAX_CULPRITS = 4
"""A line of `perfbisect list` names three; the fourth says that there are more."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One bisection. request: the accepted one as JSON text; status: see engine."""

    id: str
    created: float
    request: str
    status: str
    graph: CommitGraph
    conclusion: Conclusion | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """What lists show of a bisection. changed: when its status changed last, seconds since the epoch.

    workload, good, bad: as they were asked for; ending, culprits: of its conclusion, the first few full ids.
    """

    id: str
    created: float
    changed: float
    status: str
    workload: str | None
    good: str | None
    bad: str | None
    ending: Ending | None
    culprits: tuple[str, ...]


def summary_of(stored: Stored, changed: float) -> Summary:
    """Return the summary of a bisection. changed: when its status changed last."""
    asked = _asked_for(stored.request)
    ended = stored.conclusion
    culprits = [stored.graph.shas[i] for f in ended.culprits for i in f.commits] if ended is not None else []
    return Summary(
        id=stored.id,
        created=stored.created,
        changed=changed,
        status=stored.status,
        workload=asked.get("workload") or None,
        good=asked.get("good"),
        bad=asked.get("bad"),
        ending=ended.ending if ended is not None else None,
        culprits=tuple(culprits[:MAX_CULPRITS]),
    )


def _asked_for(text: str) -> dict[str, Any]:
    """Return the request of an accepted one; empty for a damaged one, which lists show all the same."""
    try:
        accepted = json.loads(text)
        asked = dict(accepted.get("request", accepted))
        return asked if asked.get("workload") else {**asked, "workload": accepted.get("workload")}
    except (ValueError, TypeError, AttributeError):
        return {}
