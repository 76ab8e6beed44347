"""Bisections: what `list`, `status`, `show`, `report`, `log` and `watch` print, and what changes one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse
from pydantic import Field

from bisector.app.operations.event_stream import EventStream
from bisector.app.operations.local_operations import LocalOperations
from bisector.app.operations.operations import Said
from bisector.app.operations.remote_operations import LATEST
from bisector.interfaces.web.authority import Operator, Reader, Server, server_of
from bisector.interfaces.web.sent_events import SentEvents, polled_events
from bisector.model.access import Token
from bisector.model.stored_bisection import FIRST_PRIORITY, LAST_PRIORITY
from bisector.report.html.self_contained import WHEN_SERVED
from bisector.schemas.loading import Spec
from bisector.schemas.remote_request import RemoteRequest
from bisector.schemas.web_settings import Rev, Text

router = APIRouter(prefix="/bisections", tags=["bisections"])

_MOST_ROWS = 1_000_000
"""Largest `limit` that is accepted: chosen, no lab has more rows, and the database takes any."""
_WIDEST = 1000
"""Most characters of a line of pictures, as for a terminal (`interfaces.cli.output`)."""
_POLL_SECONDS = 0.5
"""Between two polls for new events: as often as `watch` polls on the machine itself."""

Identity = Annotated[
    str,
    Path(max_length=200, description="an id, the beginning of one, or 'latest'", pattern=r"^[^\x00-\x1f]+$"),
]


class Why(Spec):
    """The reason for a change, shown to others."""

    reason: Text = ""


class NewPriority(Why):
    """How urgent a bisection is."""

    priority: int = Field(ge=FIRST_PRIORITY, le=LAST_PRIORITY, description="1 is served first")


class MarkRequest(Spec):
    """A user's verdict on a commit."""

    rev: Rev = Field(description="a commit of the range: a name, or the beginning of an id")
    verdict: Said
    note: Text = ""


class DiscardRequest(Spec):
    """Whose samples no longer count."""

    kind: Literal["boot", "testbed"]
    name: Annotated[str, Field(min_length=1, max_length=200)]
    note: Text = ""


def operations(request: Request, user: Token) -> LocalOperations:
    """Return the operations in the name of a request's sender."""
    return LocalOperations(server_of(request).wiring_for(user), user.name)


def named(identity: str) -> str | None:
    """Return the bisection that an address names, None for the latest."""
    return None if identity == LATEST else identity


def _drawing(request: Request, user: Token) -> AbstractContextManager[None]:
    """Return what holds a slot for what reads all of a bisection; entering raises Refused."""
    return server_of(request).drawings.one(user.name)


@router.get("")
def list_bisections(
    request: Request, user: Reader, limit: Annotated[int | None, Query(ge=1, le=_MOST_ROWS)] = None
) -> list[dict[str, Any]]:
    """List the bisections, the latest first: `list --json`."""
    return operations(request, user).bisections(limit)


@router.get("/{id}")
def show_status(request: Request, user: Reader, id: Identity) -> dict[str, Any]:
    """Show how far a bisection is: `status --json`."""
    return operations(request, user).status(named(id))


@router.get("/{id}/trials")
def list_trials(request: Request, user: Reader, id: Identity) -> list[dict[str, Any]]:
    """List every trial: `show --json`."""
    with _drawing(request, user):
        return operations(request, user).trials(named(id))


@router.get("/{id}/drawing")
def draw(
    request: Request, user: Reader, id: Identity, width: Annotated[int, Query(ge=20, le=_WIDEST)] = 100
) -> dict[str, Any]:
    """Draw the samples and the trials as lines of text: `show`."""
    with _drawing(request, user):
        return operations(request, user).drawing(named(id), width)


@router.get("/{id}/commit")
def show_commit(request: Request, user: Reader, id: Identity, rev: Rev) -> dict[str, Any]:
    """Show everything about one commit: `show --commit`."""
    with _drawing(request, user):
        return operations(request, user).commit(named(id), rev)


@router.get("/{id}/report")
def report(request: Request, user: Reader, id: Identity) -> dict[str, Any]:
    """Return the report: `report --json`."""
    with _drawing(request, user):
        return operations(request, user).report(named(id))


@router.get("/{id}/report.txt", response_class=PlainTextResponse)
def report_text(request: Request, user: Reader, id: Identity, short: bool = False) -> PlainTextResponse:
    """Return the report as text; short: how a bisection ended, as `watch` prints it."""
    with _drawing(request, user):
        return PlainTextResponse(operations(request, user).report_text(named(id), short=short))


@router.get("/{id}/report.html", response_class=HTMLResponse)
def report_page(request: Request, user: Reader, id: Identity) -> HTMLResponse:
    """Return the report as one self-contained page, which loads nothing."""
    with _drawing(request, user):
        page = operations(request, user).report_page(named(id))
    return HTMLResponse(page, headers={"Content-Security-Policy": WHEN_SERVED})


@router.get("/{id}/log")
def log(request: Request, user: Reader, id: Identity) -> dict[str, Any]:
    """Return the steps: `log --json`."""
    with _drawing(request, user):
        return operations(request, user).log(named(id))


@router.get("/{id}/log.txt", response_class=PlainTextResponse)
def log_text(request: Request, user: Reader, id: Identity) -> PlainTextResponse:
    """Return the steps as `git bisect replay` reads them."""
    with _drawing(request, user):
        return PlainTextResponse(operations(request, user).log_text(named(id)))


@router.get("/{id}/events", response_class=StreamingResponse)
async def stream_events(request: Request, user: Reader, id: Identity) -> StreamingResponse:
    """Send what happens until the bisection ends, as server-sent events: 'event', then 'end' or 'problem'."""
    server = server_of(request)
    return await event_answer(server, user, id, partial(server.require_valid, user))


async def event_answer(
    server: Server, user: Token, identity: str, require_valid: Callable[[], None]
) -> StreamingResponse:
    """Return the stream of a bisection's events. Raises Refused: there are enough.

    require_valid: raises Refused once the user is no longer.
    """
    with ExitStack() as until_sent:
        until_sent.enter_context(server.streams.one(user.name))
        stream = await asyncio.to_thread(EventStream, server.wiring_for(user), named(identity), server.places)
        events = polled_events(
            stream.poll, "event", _POLL_SECONDS, require_valid, server.stopping.is_set, {"id": stream.id}
        )
        return SentEvents(events, until_sent.pop_all())


@router.post("", status_code=201)
def start(request: Request, user: Operator, asked: RemoteRequest) -> dict[str, Any]:
    """Queue a bisection: `start --detach`. It names what the server's settings list."""
    made = operations(request, user).start(asked)
    return changed(request, user, "start", made, f"{asked.good}..{asked.bad} {asked.workload}")


@router.post("/{id}/resume")
def resume(request: Request, user: Operator, id: Identity, new: Why) -> dict[str, Any]:
    """Queue a bisection that rests; 'latest' is the latest that has not ended: `resume`."""
    return changed(
        request, user, "resume", operations(request, user).resume(named(id), new.reason), new.reason
    )


@router.post("/{id}/priority")
def set_priority(request: Request, user: Operator, id: Identity, new: NewPriority) -> dict[str, Any]:
    """Serve a bisection before or after others: `priority`."""
    made = operations(request, user).set_priority(id, new.priority, new.reason)
    return changed(request, user, "priority", made, f"{new.priority} {new.reason}")


@router.post("/{id}/pause")
def pause(request: Request, user: Operator, id: Identity, new: Why) -> dict[str, Any]:
    """Let a bisection rest: `pause`."""
    return changed(request, user, "pause", operations(request, user).pause(named(id), new.reason), new.reason)


@router.post("/{id}/cancel")
def cancel(request: Request, user: Operator, id: Identity, new: Why) -> dict[str, Any]:
    """End a bisection for good: `cancel`."""
    return changed(
        request, user, "cancel", operations(request, user).cancel(named(id), new.reason), new.reason
    )


@router.post("/{id}/marks", status_code=201)
def mark(request: Request, user: Operator, id: Identity, new: MarkRequest) -> dict[str, Any]:
    """Set the verdict of a commit: `mark`."""
    made = operations(request, user).mark(id, new.rev, new.verdict, new.note)
    return changed(request, user, "mark", made, f"{made['commit']} {made['verdict']} {new.note}")


@router.post("/{id}/discards", status_code=201)
def discard(request: Request, user: Operator, id: Identity, new: DiscardRequest) -> dict[str, Any]:
    """Discard the samples of a boot or a testbed: `discard`."""
    made = operations(request, user).discard(id, new.kind, new.name, new.note)
    return changed(request, user, "discard", made, f"{new.kind} {new.name} {new.note}")


def changed(
    request: Request, user: Token, what: str, made: dict[str, Any], details: str = ""
) -> dict[str, Any]:
    """Write down who changed a bisection; return what was made of it."""
    server_of(request).record(user, what, made["id"], details.strip())
    return made
