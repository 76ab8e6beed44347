"""The queue and the testbeds: what waits for what."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from fastapi.requests import Request
from pydantic import Field

from bisector.interfaces.web.api.bisection_routes import Why, operations
from bisector.interfaces.web.authority import Operator, Reader, server_of
from bisector.schemas.loading import Spec
from bisector.schemas.remote_request import require_listed

router = APIRouter(tags=["queue"])

_MOST_HOURS = 24.0 * 365
"""Longest reservation, and longest time until one: a year, chosen, as for `perfbisect testbed reserve`."""

Testbed = Annotated[
    str,
    Path(max_length=200, description="a testbed that the server lists", pattern=r"^[^\x00-\x1f]+$"),
]


class NewState(Why):
    """A new state of a testbed."""

    state: Literal["good", "maintenance", "retired"] = Field(description="retired: for good out of use")


class NewReservation(Spec):
    """For how long, and from when on, a testbed is somebody's own."""

    hours: float = Field(gt=0, le=_MOST_HOURS)
    wait: float = Field(default=0.0, ge=0, le=_MOST_HOURS, description="hours until it begins")


@router.get("/queue")
def show_queue(request: Request, user: Reader) -> dict[str, Any]:
    """Show what is executed, what waits, and for what: `queue --json`."""
    return operations(request, user).queue()


@router.get("/testbeds")
def list_testbeds(request: Request, user: Reader) -> dict[str, Any]:
    """List the testbeds, with the database's time: `testbed list --json`."""
    return operations(request, user).testbeds()


@router.post("/testbeds/{name}/state")
def set_testbed(request: Request, user: Operator, name: Testbed, new: NewState) -> dict[str, Any]:
    """Take a testbed out of use, or let it be used again: `testbed drain`, `retire` and `release`."""
    server = server_of(request)
    require_listed(server.wiring.settings.web, name)
    made = operations(request, user).set_testbed(name, new.state, new.reason)
    server.record(user, "testbed state", made["name"], f"{new.state} {new.reason}".strip())
    return made


@router.post("/testbeds/{name}/reservations", status_code=201)
def reserve_testbed(request: Request, user: Operator, name: Testbed, new: NewReservation) -> dict[str, Any]:
    """Keep a testbed for oneself: `testbed reserve`."""
    server = server_of(request)
    require_listed(server.wiring.settings.web, name)
    made = operations(request, user).reserve_testbed(name, new.hours, new.wait)
    server.record(
        user, "testbed reserve", made["name"], f"from {made['reserved_from']:.0f} for {new.hours} h"
    )
    return made
