"""The outbox: what `mail list` and `mail preview` print, and who lets messages go."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.requests import Request

from bisector.app.mail.outbox_view import without_secrets
from bisector.interfaces.web.api.bisection_routes import Why, operations
from bisector.interfaces.web.authority import Operator, Reader, server_of
from bisector.model.access import Token, may

router = APIRouter(prefix="/outbox", tags=["outbox"])

_MOST_ROWS = 1_000_000
"""Largest `limit` that is accepted: chosen, no lab has more rows, and the database takes any."""

Number = Annotated[int, Path(ge=1, le=1 << 53, description="of a message")]


@router.get("")
def list_messages(
    request: Request, user: Reader, limit: Annotated[int | None, Query(ge=1, le=_MOST_ROWS)] = None
) -> list[dict[str, Any]]:
    """List the messages, the latest first: `mail list --json`. Of webhooks readers see the host.

    Behind so many of the latest come those before them that wait for a person.
    """
    return [_seen_by(user, row) for row in operations(request, user).messages(limit)]


@router.get("/{number}")
def show_message(request: Request, user: Reader, number: Number) -> dict[str, Any]:
    """Show a message as it would go out: `mail preview --json`."""
    return _seen_by(user, operations(request, user).message(number))


@router.post("/{number}/approve")
def approve(request: Request, user: Operator, number: Number) -> dict[str, Any]:
    """Approve a message: `mail approve`."""
    made = operations(request, user).approve_message(number)
    server_of(request).record(user, "mail approve", str(number))
    return made


@router.post("/{number}/stop")
def stop(request: Request, user: Operator, number: Number, new: Why) -> dict[str, Any]:
    """Stop a message: `mail stop`."""
    made = operations(request, user).stop_message(number, new.reason)
    server_of(request).record(user, "mail stop", str(number), new.reason)
    return made


def _seen_by(user: Token, values: dict[str, Any]) -> dict[str, Any]:
    return values if may(user.role, "operate") else without_secrets(values)
