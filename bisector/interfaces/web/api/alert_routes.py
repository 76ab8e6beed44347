"""Alerts of nightly series: what `alert list` and `alert show` print, and what people say of one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.requests import Request
from pydantic import Field

from bisector.app.alerts.alert_changes import AlertChange, read_states
from bisector.interfaces.web.api.bisection_routes import operations
from bisector.interfaces.web.authority import Operator, Reader, server_of
from bisector.model.alerts import MAX_NAME_CHARACTERS, MAX_NOTE_CHARACTERS, AlertFilter, Triage
from bisector.schemas.loading import Spec

router = APIRouter(prefix="/alerts", tags=["alerts"])

_MOST_ROWS = 1_000_000
"""Largest `limit` that is accepted: chosen, no lab has more rows, and the database takes any."""

AlertId = Annotated[
    str,
    Path(max_length=200, description="an alert's id, or the beginning of one", pattern=r"^[^\x00-\x1f]+$"),
]
Name = Annotated[str, Query(max_length=200)]


class NewAlertState(Spec):
    """A change of an alert by a person; fields that are left out stay as they are."""

    state: Triage | None = None
    assignee: str | None = Field(
        default=None, description=f"'' for nobody; at most {MAX_NAME_CHARACTERS} characters"
    )
    note: str = Field(default="", description=f"at most {MAX_NOTE_CHARACTERS} characters")
    duplicate_of: str = Field(default="", max_length=200, description="another alert's id")
    revision: int | None = Field(
        default=None,
        ge=1,
        description="the one that was looked at; refused where the alert was changed since",
    )


@router.get("")
def list_alerts(
    request: Request,
    user: Reader,
    series: Name = "",
    workload: Name = "",
    state: Annotated[str, Query(max_length=200, description="states, with commas between them")] = "",
    open: bool | None = None,
    after: Annotated[str, Query(max_length=200, description="the last id of the page before")] = "",
    limit: Annotated[int | None, Query(ge=1, le=_MOST_ROWS)] = None,
) -> dict[str, Any]:
    """List alerts, the newest first: `alert list --json`."""
    wanted = AlertFilter(
        series=series, workload=workload, states=read_states(state.split(",") if state else ()), open=open
    )
    return operations(request, user).alerts(wanted, after=after, limit=limit)


@router.get("/{id}")
def show_alert(request: Request, user: Reader, id: AlertId) -> dict[str, Any]:
    """Show an alert with its history: `alert show --json`."""
    return operations(request, user).alert(id)


@router.post("/{id}")
def set_alert(request: Request, user: Operator, id: AlertId, new: NewAlertState) -> dict[str, Any]:
    """Say what an alert is, whose it is, or write a note: `alert set`."""
    change = AlertChange(**new.model_dump())
    made = operations(request, user).set_alert(id, change)
    server_of(request).record(user, "alert", made["id"], f"{made['state']} {new.note}".strip())
    return made
