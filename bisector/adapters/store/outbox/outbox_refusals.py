"""Errors that every outbox raises, in the same words."""

from __future__ import annotations

from bisector.errors import NotFound, RequestError
from bisector.model.outbox import APPROVABLE, STOPPABLE, OutboxEntry


def unknown(number: int) -> NotFound:
    """Return the error of a number that no message has."""
    return NotFound(f"there is no message {number} in the outbox", cure="'perfbisect mail list' shows them")


def check_approval(entry: OutboxEntry) -> None:
    """Raise RequestError unless a message may be approved now."""
    if entry.state in APPROVABLE or (entry.state == "sent" and entry.refused):
        return
    if entry.state == "draft":
        raise RequestError(
            f"message {entry.number} is a draft: {entry.note or 'it is not finished'}",
            cure="'perfbisect mail list' shows the others; a person may send the text of this one by hand",
        )
    raise _wrong_state(entry, "approved")


def check_stop(entry: OutboxEntry) -> None:
    """Raise RequestError unless a message can be stopped now."""
    if entry.state not in STOPPABLE:
        raise _wrong_state(entry, "stopped")


def _wrong_state(entry: OutboxEntry, wanted: str) -> RequestError:
    now = {"sending": "being sent now", "sent": "sent", "approved": "approved already"}
    return RequestError(
        f"message {entry.number} cannot be {wanted}: it is {now.get(entry.state, entry.state)}",
        cure="'perfbisect mail list' shows what became of it",
    )
