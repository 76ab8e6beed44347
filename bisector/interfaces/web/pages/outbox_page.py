"""The outbox: messages that leave the lab, what became of each, and who lets them go."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.responses import Response

from bisector.app.mail import outbox_view
from bisector.app.mail.delivery import outbox_of
from bisector.app.operations.operations import Values
from bisector.interfaces.web.api.bisection_routes import Why
from bisector.interfaces.web.pages.page_view import (
    Changing,
    Fields,
    Looking,
    Page,
    View,
    add_page,
    back_to,
    checked,
    url,
)
from bisector.model.access import may
from bisector.model.outbox import APPROVABLE, STOPPABLE, OutboxEntry

router = APIRouter(prefix="/outbox", include_in_schema=False)

_ROWS = 200
"""Messages that are shown, the latest: chosen, those of some weeks. Those that wait for a person come
besides."""
_COLUMNS = (
    "number state about workload kind audience channel recipients subject bisection by note attempts "
    "created changed sent"
)

Number = Annotated[int, Path(ge=1, le=1 << 53)]


@add_page(router, "")
def show_outbox(view: Looking) -> Page:
    """Show the latest messages, and those before them that wait for a person."""
    found = outbox_view.latest(outbox_of(view.wiring), _ROWS)
    rows = [_row(view, entry) for entry in outbox_view.with_waits(view.wiring, found)]
    return Page("outbox.html.j2", "Outbox", rows, rows, {"rows": rows}, _COLUMNS)


@add_page(router, "/{number}")
def show_message(view: Looking, number: Number) -> Page:
    """Show one message as it is sent."""
    (entry,) = outbox_view.with_waits(view.wiring, [outbox_of(view.wiring).entry(number)])
    row = _row(view, entry)
    values = {**row, "text": entry.message.text, "headers": dict(entry.message.headers)}
    context = {
        "row": row,
        "text": entry.message.text,
        "refused": {_shown(view, entry, who): why for who, why in entry.refused.items()},
        "may_approve": entry.state in APPROVABLE or (entry.state == "sent" and entry.refused),
        "may_stop": entry.state in STOPPABLE,
    }
    return Page("message.html.j2", f"Message {number}", values, [row], context)


def _shown(view: View, entry: OutboxEntry, target: str) -> str:
    """Return where a message goes; of a webhook only the host to those who may not send it.

    Its path is often the secret of who may post there.
    """
    return target if may(view.visitor.user.role, "operate") else outbox_view.host_only(target)


def _row(view: View, entry: OutboxEntry) -> Values:
    found: dict[str, Any] = {
        "number": entry.number,
        "state": entry.state,
        **asdict(entry.key),
        "audience": _shown(view, entry, entry.key.audience),
        "channel": entry.channel,
        "recipients": [_shown(view, entry, one) for one in entry.message.recipients],
        "subject": entry.message.subject,
        "bisection": entry.bisection,
        "by": entry.by,
        "note": entry.note,
        "attempts": entry.attempts,
        "created": entry.created,
        "changed": entry.changed,
        "sent": entry.sent,
    }
    return found


@router.post("/{number}/approve")
def approve(view: Changing, number: Number, fields: Fields) -> Response:
    """Approve a message for sending."""
    outbox_of(view.wiring).approve(number, view.visitor.user.name)
    view.server.record(view.visitor.user, "mail approve", str(number))
    return back_to(view, fields, url("outbox", str(number)))


@router.post("/{number}/stop")
def stop(view: Changing, number: Number, fields: Fields) -> Response:
    """Stop a message: it is not sent any more."""
    why = checked(Why, fields).reason
    outbox_of(view.wiring).stop(number, view.visitor.user.name, why)
    view.server.record(view.visitor.user, "mail stop", str(number), why)
    return back_to(view, fields, url("outbox", str(number)))
