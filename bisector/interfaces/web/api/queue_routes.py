"""The queue and the testbeds: what waits for what."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.requests import Request

from bisector.interfaces.web.api.bisection_routes import operations
from bisector.interfaces.web.authority import Reader

router = APIRouter(tags=["queue"])


@router.get("/queue")
def show_queue(request: Request, user: Reader) -> dict[str, Any]:
    """Show what is executed, what waits, and for what: `queue --json`."""
    return operations(request, user).queue()
