"""Users of the server, and the log of changes. For administrators."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.requests import Request
from pydantic import Field

from bisector.app.operations.operations import MAX_REMOVED
from bisector.app.upkeep import tokens
from bisector.interfaces.web.api.bisection_routes import operations
from bisector.interfaces.web.authority import Administrator, server_of
from bisector.model.access import Role
from bisector.schemas.loading import Spec
from bisector.schemas.web_settings import Name

router = APIRouter(tags=["administration"])

_MOST_CHANGES = 1000
"""Changes in one answer: chosen, more than anybody reads at once."""


class NewToken(Spec):
    """A token to be made."""

    name: Name = Field(description="of the person or program that has it")
    role: Role = "read"
    days: int | None = Field(default=None, ge=1, le=3650, description="how long it is valid; null: for good")


class Removal(Spec):
    """Which bisections go, for good."""

    ids: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=MAX_REMOVED)
    ]
    dry_run: bool = Field(default=False, description="only say what would be removed")


@router.get("/tokens")
def list_tokens(request: Request, user: Administrator) -> list[dict[str, Any]]:
    """List the tokens, as `perfbisect token list --json` does; without their secrets, which nobody has."""
    wiring = server_of(request).wiring
    now = wiring.coordinator.now()
    return [tokens.row(token, now) for token in tokens.access_of(wiring).tokens()]


@router.post("/tokens", status_code=201)
def add_token(request: Request, user: Administrator, new: NewToken) -> dict[str, Any]:
    """Make a token; its secret is in this answer, and nowhere else."""
    made, secret = tokens.add(server_of(request).wiring, new.name, new.role, new.days, user.name)
    return {**tokens.row(made, made.created), "token": secret}


@router.delete("/tokens/{name}")
def revoke_token(request: Request, user: Administrator, name: Name) -> dict[str, Any]:
    """Let a token be valid no longer."""
    revoked = tokens.revoke(server_of(request).wiring, name, user.name)
    return tokens.row(revoked, revoked.created)


@router.post("/removals")
def remove_bisections(request: Request, user: Administrator, asked: Removal) -> dict[str, Any]:
    """Remove bisections that have ended, all or none: `rm --yes`."""
    made = operations(request, user).remove(asked.ids, dry_run=asked.dry_run)
    for item in made["items"]:
        if item["removed"]:
            server_of(request).record(user, "rm", item["name"])
    return made


@router.get("/changes")
def list_changes(
    request: Request, user: Administrator, limit: Annotated[int, Query(ge=1, le=_MOST_CHANGES)] = 100
) -> list[dict[str, Any]]:
    """List who changed what over this interface, or gave whom a token; the latest first."""
    found = tokens.access_of(server_of(request).wiring).changes(limit)
    return [
        {"at": c.at, "who": c.who, "what": c.what, "target": c.target, "details": c.details} for c in found
    ]
