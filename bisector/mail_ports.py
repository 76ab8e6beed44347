"""The ports of messages that leave the lab: the outbox, and what delivers a message."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from bisector.model.outbox import (
    CHANNELS,
    SENDING_SECONDS,
    Channel,
    Delivery,
    Key,
    Message,
    OutboxEntry,
    State,
    Topic,
)


class Outbox(Protocol):
    """Messages and what became of them; one for each key."""

    def put(
        self,
        key: Key,
        channel: Channel,
        message: Message,
        state: State,
        *,
        by: str,
        note: str = "",
        bisection: str = "",
    ) -> OutboxEntry | None:
        """Add a message, or replace a draft of this key; None: there is another one, which stays as it is."""
        ...

    def told_until(self, topic: Topic) -> float | None:
        """Return the time up to which all that happened is in the outbox, None before any `tell_until`."""
        ...

    def tell_until(self, topic: Topic, at: float) -> None:
        """Note that all that happened before a time is in the outbox."""
        ...

    def entries(self, states: Collection[State] = (), limit: int | None = None) -> Sequence[OutboxEntry]:
        """Return the messages in the given states, all by default, newest first."""
        ...

    def entry(self, number: int) -> OutboxEntry:
        """Return a message. Raises NotFound."""
        ...

    def find(self, key: Key) -> OutboxEntry | None:
        """Return the message of a key."""
        ...

    def of_bisection(self, bisection: str) -> Sequence[OutboxEntry]:
        """Return the messages of a bisection, oldest first."""
        ...

    def approve(self, number: int, by: str) -> OutboxEntry:
        """Let a message be sent, also once more where its delivery is unknown or was refused.

        Raises NotFound, RequestError: it is a draft, on its way, or has arrived.
        """
        ...

    def stop(self, number: int, by: str, why: str) -> OutboxEntry:
        """Stop a message. Raises NotFound, RequestError: it is on its way, or has arrived."""
        ...

    def claim(
        self, sender: str, daily_limit: int, channels: Collection[Channel] = CHANNELS
    ) -> OutboxEntry | None:
        """Take the oldest approved message whose time has come, for one sender alone; it is then *sending*.

        daily_limit: mails handed over within 24 hours, after which mails wait; channels: that it can use.
        """
        ...

    def still_ours(self, number: int, sender: str) -> bool:
        """Return whether a message is still to be sent by this sender, and count its time anew."""
        ...

    def finish(self, number: int, sender: str, done: Delivery) -> OutboxEntry | None:
        """Record the outcome of an attempt; None: another sender has the message now."""
        ...

    def abandon(self, seconds: float = SENDING_SECONDS) -> Sequence[OutboxEntry]:
        """Mark as unsure the messages that have been in sending for so long; return them."""
        ...


class Deliverer(Protocol):
    """What hands a message over: SMTP, or a POST."""

    def deliver(self, entry: OutboxEntry, may_hand_over: Callable[[], bool]) -> Delivery:
        """Try to deliver a message to its pending recipients. Never raises for what the network does.

        may_hand_over: asked right before the message goes out; False: it does not, as somebody else has it.
        """
        ...
