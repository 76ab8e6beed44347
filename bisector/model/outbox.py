"""The outbox: messages that leave the lab, and their state. A message is sent once or not at all.

*sending* is written before the first byte goes out. A sender that is killed after that leaves the message in
this state; nobody knows whether it has arrived, so a person decides.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

State = Literal["draft", "waiting", "approved", "sending", "sent", "unsure", "refused", "stopped"]
"""draft: not to be sent as it is, the note says why; waiting: for a person's approval; unsure: nobody knows
whether it has arrived; refused: no server takes it, or none took it for days; stopped: by a person."""

Kind = Literal["regression", "ready", "named", "fixed", "weekly", "ended", "failed", "event"]
"""ready: a draft to maintainers waits for approval now; named: a later commit names a reported culprit in
'Fixes:'; fixed: one reverts it, or its level is measured as back; ended, failed: a bisection, for the person
who asked to be told; event: for the lab's webhook."""

Channel = Literal["mail", "webhook"]
CHANNELS: tuple[Channel, ...] = ("mail", "webhook")

Topic = Literal["mail", "webhook", "changes"]
"""Topics that are reported up to a time: bisections that ended, by each channel; changes of alerts and
testbeds."""

LAB, MAINTAINERS = "lab", "maintainers"
"""Classes of recipients. The others are one recipient each: an address or a URL."""

APPROVABLE: Collection[State] = ("waiting", "unsure", "refused", "stopped")
STOPPABLE: Collection[State] = ("draft", "waiting", "approved", "unsure", "refused")
UNDELIVERED: Collection[State] = ("unsure", "refused")
"""States that a person must look at."""

DAY_SECONDS = 86400.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 60.0, 4 * 3600.0
"""First and longest wait between attempts; each is four times the one before. A mail server that restarts
is back within minutes."""
GIVE_UP_SECONDS = 4 * DAY_SECONDS
"""Time from the first attempt to the last: RFC 5321, 4.5.4.1 has four to five days."""
SENDING_SECONDS = 900.0
"""A sender that takes longer has died: three times what one delivery may take."""


@dataclass(frozen=True, slots=True)
class Key:
    """The key of a message; there is one of each. about: a culprit's id, a bisection, a week, an event.

    audience: LAB, MAINTAINERS, or one address or URL.
    """

    about: str
    workload: str
    kind: Kind
    audience: str


@dataclass(frozen=True, slots=True)
class Message:
    """The content of a message. text: for a webhook, the JSON body; headers: for threading."""

    recipients: tuple[str, ...]
    subject: str
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A message with its state. Times are seconds since the epoch by the database's clock.

    by: who set the state; note: the reason; sender: the process that sends it; first_attempt, not_before: of
    deliveries; sent: when it was handed over, or may have been; accepted, refused: recipients, those that
    were refused with the server's answer.
    """

    number: int
    key: Key
    channel: Channel
    message: Message
    state: State
    bisection: str
    created: float
    changed: float
    by: str
    note: str = ""
    sender: str = ""
    attempts: int = 0
    first_attempt: float | None = None
    not_before: float = 0.0
    sent: float | None = None
    accepted: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def pending(self) -> tuple[str, ...]:
        """The recipients that neither accepted nor refused it."""
        return tuple(
            one for one in self.message.recipients if one not in self.accepted and one not in self.refused
        )


@dataclass(frozen=True, slots=True)
class Delivery:
    """The result of one attempt. accepted, refused: recipients; unsure, later: the reason, '' if neither.

    unsure: all pending recipients may have got it; later: they certainly did not.
    """

    accepted: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    unsure: str = ""
    later: str = ""


def claimed(entry: OutboxEntry, sender: str, now: float) -> OutboxEntry:
    """Return an approved entry as it is while a process sends it."""
    first = now if entry.first_attempt is None else entry.first_attempt
    return replace(
        entry,
        state="sending",
        sender=sender,
        by=sender,
        note="",
        changed=now,
        sent=now,
        attempts=entry.attempts + 1,
        first_attempt=first,
    )


def delivered(entry: OutboxEntry, done: Delivery, now: float) -> OutboxEntry:
    """Return an entry after an attempt to send it."""
    entry = replace(
        entry,
        by=entry.sender,
        changed=now,
        note="",
        accepted=(*entry.accepted, *done.accepted),
        refused={**entry.refused, **done.refused},
        sent=now if done.accepted or done.unsure or entry.accepted else None,
    )
    if done.unsure:
        return replace(entry, state="unsure", note=done.unsure)
    if entry.pending:
        first = now if entry.first_attempt is None else entry.first_attempt
        if now - first >= GIVE_UP_SECONDS:
            never = dict.fromkeys(entry.pending, f"given up: {done.later}")
            return replace(
                entry, state="sent" if entry.accepted else "refused", refused={**entry.refused, **never}
            )
        pause = min(FIRST_PAUSE_SECONDS * 4.0 ** min(entry.attempts - 1, 9), LONGEST_PAUSE_SECONDS)
        return replace(entry, state="approved", note=done.later, not_before=now + pause)
    return replace(entry, state="sent" if entry.accepted else "refused")


def approved(entry: OutboxEntry, by: str, now: float) -> OutboxEntry:
    """Return an entry that a person approved; those who refused it are asked again."""
    return replace(
        entry,
        state="approved",
        by=by,
        note="",
        changed=now,
        attempts=0,
        first_attempt=None,
        not_before=0.0,
        refused={},
    )


def abandoned(entry: OutboxEntry, now: float) -> OutboxEntry:
    """Return an entry whose sender has died."""
    why = "the process that sent it has died; it may have arrived"
    return replace(entry, state="unsure", note=why, changed=now)
