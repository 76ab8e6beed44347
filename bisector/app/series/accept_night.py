"""The bisection of a night or of its confirmation: two commits, and a planner of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bisector.app.accept import accept_ends
from bisector.errors import NotFound
from bisector.model.commit_graph import CommitGraph
from bisector.model.series import bisection_id, owner_of
from bisector.model.stored_bisection import PRIORITIES, Stored
from bisector.schemas.request import NightSpec, Request

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.model.goal import Find
    from bisector.model.series import Night, Series
    from bisector.schemas.request import Accepted


def night_bisection(wiring: Wiring, series: Series, night: Night) -> Stored:
    """Return the bisection of a night whose commit is known. Raises RequestError, InfrastructureError."""
    spec = NightSpec(
        series=series.name, begun=series.created, number=night.number, kind=night.kind, boots=series.boots
    )
    return _bisection(wiring, series, series.reference, night.commit, spec)


def accepted_night(wiring: Wiring, series: Series, reference: str, tip: str) -> Accepted:
    """Return what a night of a series that is not stored yet would ask for. Raises as above."""
    return accept_ends(wiring, _request(wiring, series, reference, tip), reference, tip)


def confirmation_bisection(
    wiring: Wiring, series: Series, number: int, last_good: str, tip: str, *, improved: bool, alert: str
) -> Stored:
    """Return the confirmation of what a night made suspect. number: of that night. Raises as above."""
    spec = NightSpec(
        series=series.name, begun=series.created, number=number, kind="confirmation", alert=alert
    )
    return _bisection(wiring, series, last_good, tip, spec, improved=improved)


def _bisection(
    wiring: Wiring, series: Series, older: str, newer: str, spec: NightSpec, *, improved: bool = False
) -> Stored:
    good, bad = (newer, older) if improved else (older, newer)
    request = _request(wiring, series, good, bad, "fix" if improved else "regression")
    accepted = accept_ends(wiring, request, good, bad).model_copy(update={"night": spec})
    return Stored(
        id=bisection_id(series.name, spec.kind, f"{spec.number}-{accepted.identity()}"),
        created=wiring.clock.now(),
        request=accepted.model_dump_json(),
        status="queued",
        graph=CommitGraph((older, newer), ((), (0,)), (False, True), good=0, bad=1),
        priority=PRIORITIES["low"],
        owner=owner_of(series.name),
    )


def _request(wiring: Wiring, series: Series, good: str, bad: str, find: Find = "regression") -> Request:
    return Request(
        good=good,
        bad=bad,
        find=find,
        workload=series.workload,
        repo=series.repo,
        threshold=series.threshold,
        alpha=wiring.settings.alpha,
        recipe=series.recipe,
        testbeds=(series.testbed,) if series.testbed else (),
        max_hours=series.budget,
    )


def store_once(wiring: Wiring, stored: Stored) -> None:
    """Store a bisection that is queued, unless it is there already."""
    try:
        wiring.store.status(stored.id)
    except NotFound:
        wiring.store.create(stored)
