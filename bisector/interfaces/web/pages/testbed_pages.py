"""Testbeds: what each may be used for, its health checks, its latest boots and failures, and its forms."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from bisector.app.execution.health_check import health_store
from bisector.app.operations.operations import Values
from bisector.app.wiring import Wiring
from bisector.errors import NotFound, nearest
from bisector.interfaces.web.api import queue_routes
from bisector.interfaces.web.api.queue_routes import NewReservation, NewState, Testbed
from bisector.interfaces.web.pages.page_view import (
    Changing,
    Fields,
    Looking,
    Page,
    add_page,
    back_to,
    checked,
    url,
)
from bisector.model.commit_graph import short_name
from bisector.model.records import Booted, RunFailed
from bisector.report.html import health_chart

router = APIRouter(prefix="/testbeds", include_in_schema=False)

_BISECTIONS = 5
"""The latest of a testbed whose boots are shown: to read the records of one takes a tenth of a second."""
_CHECKS = 200
"""Boots of health checks that are drawn: two a day are those of a hundred days."""
_BOOTS = 50
"""Rows of the table of boots."""
_COLUMNS = "name state reason by since reserved_by reserved_from reserved_until used_by held_by worker"
_BOOT_COLUMNS = "bisection boot at purpose seconds failure"
_STATES = (
    ("good", "Release: may be used"),
    ("maintenance", "Drain: out of use"),
    ("retired", "Retire: out of use for good"),
)


@add_page(router, "", follows=True)
def show_testbeds(view: Looking) -> Page:
    """Show all testbeds."""
    found = view.operations.testbeds()
    return Page("testbeds.html.j2", "Testbeds", found, found["testbeds"], found, _COLUMNS)


@add_page(router, "/{name}", follows=True)
def show_testbed(view: Looking, name: Testbed) -> Page:
    """Show one testbed."""
    wiring, found = view.wiring, view.operations.testbeds()
    names = [row["name"] for row in found["testbeds"]]
    if name not in names:
        raise NotFound(
            f"there is no testbed '{name}'{nearest(name, names)}", cure="the page 'Testbeds' has all"
        )
    row = found["testbeds"][names.index(name)]
    points = health_store(wiring).points(name)
    drawn = health_chart.comparable(points)[-_CHECKS:]
    boots = _latest_boots(wiring, name)
    checks = [{"at": p.at, "outcome": p.outcome, "words": p.words, "values": list(p.values)} for p in points]
    reservations = [
        {"who": r.who, "from": r.start, "until": r.end}
        for r in wiring.coordinator.reservations()
        if r.testbed == name
    ]
    values = {**row, "reservations": reservations, "checks": checks, "boots": boots}
    context = {
        "row": row,
        "reservations": reservations,
        "chart": health_chart.render(drawn),
        "kernel": points[-1].kernel if points else {},
        "commit": short_name(points[-1].kernel["commit"]) if points else "",
        "others": len(points) - len(drawn),
        "checks": checks[: -_BOOTS - 1 : -1],
        "boots": boots[:_BOOTS],
        "failures": [boot for boot in boots if boot["failure"]][:_BOOTS],
        "bisections": _BISECTIONS,
        "states": [one for one in _STATES if one[0] != row["state"]],
    }
    return Page("testbed.html.j2", name, values, boots, context, _BOOT_COLUMNS)


def _latest_boots(wiring: Wiring, name: str) -> list[Values]:
    """Return the boots of the latest bisections that may use a testbed, the latest first."""
    using = [one for one in wiring.store.list() if name in one.testbeds and one.progress.boots]
    found = []
    for one in using[:_BISECTIONS]:
        records = [record for _, record in wiring.store.records(one.id)]
        failed = {record.boot: record.failure for record in records if isinstance(record, RunFailed)}
        found += [
            {
                "bisection": one.id,
                "boot": record.boot,
                "at": record.at,
                "purpose": record.purpose,
                "seconds": record.seconds,
                "failure": record.failure or failed.get(record.boot, ""),
            }
            for record in records
            if isinstance(record, Booted) and record.testbed == name
        ]
    return sorted(found, key=lambda boot: -boot["at"])


@router.post("/{name}/state")
def set_state(view: Changing, name: Testbed, fields: Fields) -> Response:
    """Take a testbed out of use, or let it be used again."""
    queue_routes.set_testbed(view.request, view.visitor.user, name, checked(NewState, fields))
    return back_to(view, fields, url("testbeds", name))


@router.post("/{name}/reservations")
def reserve(view: Changing, name: Testbed, fields: Fields) -> Response:
    """Keep a testbed for oneself."""
    queue_routes.reserve_testbed(view.request, view.visitor.user, name, checked(NewReservation, fields))
    return back_to(view, fields, url("testbeds", name))
