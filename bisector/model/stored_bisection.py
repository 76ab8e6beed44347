"""A bisection as the store knows it, and what lists show of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Conclusion, Decision, Ending, Measure

REMOVING = "removing"
"""The status of a bisection whose removal has begun: it is over, and part of it may be gone already."""
ENDED = ("done", "cancelled", REMOVING)
"""Statuses after which a bisection is over."""
TO_EXECUTE = ("queued", "running")
"""Statuses of bisections that an executor works on."""
RESTING = ("new", "paused", "interrupted", "failed")
"""Statuses of bisections that rest until they are resumed."""
OPEN = (*TO_EXECUTE, *RESTING)
"""Statuses of bisections that are not over."""

PRIORITIES = {"high": 2, "normal": 5, "low": 8}
"""What people call priorities. Between and beside them there is room for one that comes before or after."""
FIRST_PRIORITY, LAST_PRIORITY = 1, 9
NORMAL_PRIORITY = PRIORITIES["normal"]

IMPORTED = "imported"
"""The last action of a bisection that came as an archive when it was over: its end is no news here."""

MAX_CULPRITS = 4
"""A line of `perfbisect list` names three; the fourth says that there are more."""


def taken_up_from(status: str) -> tuple[str, ...]:
    """Return from which resting statuses a bisection is taken up that had `status` when that was asked for.

    One that was paused while it was prepared stays so.
    """
    return tuple(each for each in RESTING if each != "paused" or status == "paused")


@dataclass(frozen=True, slots=True)
class Action:
    """What somebody did to a bisection. what: a word, 'paused'; by: user@host; why: as they said.

    at: seconds since the epoch by the database's clock, which sets it.
    """

    what: str
    by: str
    why: str = ""
    at: float = 0.0


def failure(why: str) -> Action:
    """Return what is kept with a bisection that failed: nobody may have watched it."""
    return Action("failed", "perfbisect", why)


@dataclass(frozen=True, slots=True)
class Stored:
    """One bisection. request: the accepted one as JSON text; status: see engine.

    priority: 1 is served first; owner: who began it; '' where no one wrote that down; action: the last.
    """

    id: str
    created: float
    request: str
    status: str
    graph: CommitGraph
    conclusion: Conclusion | None = None
    priority: int = NORMAL_PRIORITY
    owner: str = ""
    action: Action | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a bisection is. boots: that succeeded; live: the testbeds of those that have not ended.

    left: of its last decision, None where nobody can say; decided: when that was, seconds since the epoch.
    measured: the testbeds of all its boots; building: a kernel is built for it, and the testbed was left.
    """

    boots: int = 0
    live: tuple[str, ...] = ()
    left: float | None = None
    decided: float | None = None
    measured: tuple[str, ...] = ()
    building: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """What lists show of a bisection. changed: when its status changed last, seconds since the epoch.

    workload, good, bad: as they were asked for; ending, culprits: of its conclusion, the first few full ids;
    testbeds: those that it may use; progress: of one that an earlier version ended, none.
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
    priority: int
    owner: str
    action: Action | None
    testbeds: tuple[str, ...]
    progress: Progress

    @property
    def ended_here(self) -> bool:
        """Whether it is over and was not when it came here, if it was imported."""
        return self.status in ENDED and (self.action is None or self.action.what != IMPORTED)


def workload_name(asked: str | None) -> str:
    """Return what people call a workload: a shipped one as it is named, another one by its own folder."""
    name = asked or ""
    return name.rstrip("/").rpartition("/")[2] if name.startswith("/") else name


def summary_of(stored: Stored, changed: float, progress: Progress = Progress()) -> Summary:
    """Return the summary of a bisection. changed: when its status changed last."""
    accepted = _accepted(stored.request)
    asked = _asked_for(accepted)
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
        priority=stored.priority,
        owner=stored.owner,
        action=stored.action,
        testbeds=testbeds_of(stored.request),
        progress=progress,
    )


def left_of(decision: Decision) -> float | None:
    """Return the seconds until the next culprit is located or proven, by a decision; None: it does not say.

    While the ends are compared nobody knows: `Measure.left` is the rest of that comparison then.
    """
    return decision.left if isinstance(decision, Measure) and decision.purpose != "verify" else None


def testbeds_of(request: str) -> tuple[str, ...]:
    """Return the testbeds of an accepted request; none of a damaged one."""
    found = _accepted(request).get("testbeds")
    return tuple(map(str, found)) if isinstance(found, list) else ()


def _accepted(text: str) -> dict[str, Any]:
    """Return an accepted request; empty for a damaged one, which lists show all the same."""
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError):
        return {}


def _asked_for(accepted: dict[str, Any]) -> dict[str, Any]:
    """Return the request of an accepted one."""
    try:
        asked = dict(accepted.get("request", accepted))
    except (ValueError, TypeError):
        return {}
    return asked if asked.get("workload") else {**asked, "workload": accepted.get("workload")}
