"""Nightly series: what `series list` and `series show` print, and what people do with one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.requests import Request
from pydantic import Field

from bisector.interfaces.web.api.bisection_routes import Why, operations
from bisector.interfaces.web.authority import Administrator, Operator, Reader, server_of
from bisector.model.access import Token
from bisector.schemas.loading import Spec
from bisector.schemas.series_request import RemoteSeries
from bisector.schemas.web_settings import Rev

router = APIRouter(prefix="/series", tags=["series"])

_MOST_COMMITS = 1_000_000
"""Largest step between commits that are measured: about as many as all of Linux's history has."""

SeriesName = Annotated[str, Path(max_length=200, description="a series", pattern=r"^[^\x00-\x1f]+$")]


class Backfill(Spec):
    """Which older commits are measured."""

    since: Rev | None = Field(default=None, description="after this one; null: after the first measured")
    every: int = Field(default=1, ge=1, le=_MOST_COMMITS, description="only each so-many-th")


@router.get("")
def list_series(request: Request, user: Reader) -> list[dict[str, Any]]:
    """List the series: `series list --json`."""
    return operations(request, user).series_list()


@router.get("/{name}")
def show_series(request: Request, user: Reader, name: SeriesName) -> dict[str, Any]:
    """Show a series with its nights: `series show --json`."""
    return operations(request, user).series(name)


@router.post("", status_code=201)
def add_series(request: Request, user: Operator, asked: RemoteSeries) -> dict[str, Any]:
    """Add a series; it names what the server's settings list: `series add`. git fetches its branch."""
    with server_of(request).few.one(user.name):
        made = operations(request, user).add_foreign_series(asked)
    if not asked.dry_run:
        _changed(request, user, "series add", asked.name, f"{asked.workload} of {asked.branch}")
    return made


@router.post("/{name}/nights", status_code=201)
def run_night(request: Request, user: Operator, name: SeriesName) -> dict[str, Any]:
    """Make a night due now; a worker begins it: `series run`."""
    made = operations(request, user).run_night(name)
    return _changed(request, user, "series run", name, f"night {made['number']}", made)


@router.post("/{name}/backfill", status_code=201)
def backfill(request: Request, user: Operator, name: SeriesName, new: Backfill) -> list[dict[str, Any]]:
    """Have older commits measured: `series backfill`."""
    with server_of(request).few.one(user.name):
        made = operations(request, user).backfill(name, new.since, new.every)
    _changed(request, user, "series backfill", name, f"{len(made)} nights")
    return made


@router.post("/{name}/pause")
def pause_series(request: Request, user: Operator, name: SeriesName, new: Why) -> dict[str, Any]:
    """Let a series rest: `series pause`."""
    made = operations(request, user).pause_series(name, new.reason)
    return _changed(request, user, "series pause", name, new.reason, made)


@router.post("/{name}/resume")
def resume_series(request: Request, user: Operator, name: SeriesName) -> dict[str, Any]:
    """Let a series go on: `series resume`."""
    return _changed(request, user, "series resume", name, "", operations(request, user).resume_series(name))


@router.delete("/{name}")
def remove_series(request: Request, user: Administrator, name: SeriesName) -> dict[str, Any]:
    """Forget a series with what it has measured: `series remove`."""
    return _changed(request, user, "series remove", name, "", operations(request, user).remove_series(name))


def _changed(
    request: Request, user: Token, what: str, name: str, details: str, made: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Write down who changed a series; return what was made of it."""
    server_of(request).record(user, what, name, details)
    return made or {}
