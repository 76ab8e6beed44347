"""An outbox without a database: for tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from bisector.adapters.store.outbox import outbox_refusals
from bisector.model.outbox import (
    CHANNELS,
    DAY_SECONDS,
    SENDING_SECONDS,
    Channel,
    Delivery,
    Key,
    Message,
    OutboxEntry,
    State,
    Topic,
    abandoned,
    approved,
    claimed,
    delivered,
)


class MemoryOutbox:
    """mail_ports.Outbox in memory: lost when its process ends."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """clock: stands for the database's."""
        self._clock = clock
        self._lock = threading.RLock()
        self._entries: dict[int, OutboxEntry] = {}
        self._told: dict[Topic, float] = {}

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
        """Add a message, or replace a draft of this key; None: there is another one."""
        with self._lock:
            old, now = self.find(key), self._clock()
            if old is not None and old.state != "draft":
                return None
            number = len(self._entries) + 1 if old is None else old.number
            created = now if old is None else old.created
            return self._keep(
                OutboxEntry(number, key, channel, message, state, bisection, created, now, by, note)
            )

    def told_until(self, topic: Topic) -> float | None:
        """Return the time up to which all that happened is in the outbox, None before any `tell_until`."""
        return self._told.get(topic)

    def tell_until(self, topic: Topic, at: float) -> None:
        """Note that all that happened before a time is in the outbox."""
        self._told[topic] = at

    def entries(self, states: Collection[State] = (), limit: int | None = None) -> Sequence[OutboxEntry]:
        """Return the messages in the given states, all by default, newest first."""
        with self._lock:
            found = [e for e in self._entries.values() if not states or e.state in states]
            return found[::-1][:limit]

    def entry(self, number: int) -> OutboxEntry:
        """Return a message. Raises NotFound."""
        with self._lock:
            if number not in self._entries:
                raise outbox_refusals.unknown(number)
            return self._entries[number]

    def find(self, key: Key) -> OutboxEntry | None:
        """Return the message of a key."""
        with self._lock:
            return next((e for e in self._entries.values() if e.key == key), None)

    def of_bisection(self, bisection: str) -> Sequence[OutboxEntry]:
        """Return the messages of a bisection, oldest first."""
        return [e for e in self.entries()[::-1] if e.bisection == bisection]

    def approve(self, number: int, by: str) -> OutboxEntry:
        """Approve a message for sending, or for sending again. Raises NotFound, RequestError."""
        with self._lock:
            entry = self.entry(number)
            outbox_refusals.check_approval(entry)
            return self._keep(approved(entry, by, self._clock()))

    def stop(self, number: int, by: str, why: str) -> OutboxEntry:
        """Stop a message: it is not sent any more. Raises NotFound, RequestError."""
        with self._lock:
            entry = self.entry(number)
            outbox_refusals.check_stop(entry)
            return self._keep(replace(entry, state="stopped", by=by, note=why, changed=self._clock()))

    def claim(
        self, sender: str, daily_limit: int, channels: Collection[Channel] = CHANNELS
    ) -> OutboxEntry | None:
        """Reserve the oldest approved message that is due for one sender."""
        with self._lock:
            now = self._clock()
            all_ = self._entries.values()
            today = sum(e.channel == "mail" and (e.sent or 0.0) > now - DAY_SECONDS for e in all_)
            due = [
                e
                for e in all_
                if e.state == "approved"
                and e.channel in channels
                and e.not_before <= now
                and (e.channel != "mail" or today < daily_limit)
            ]
            return self._keep(claimed(due[0], sender, now)) if due else None

    def still_ours(self, number: int, sender: str) -> bool:
        """Return whether a message is still to be sent by this sender, and count its time anew."""
        with self._lock:
            entry = self.entry(number)
            ours = entry.state == "sending" and entry.sender == sender
            if ours:
                self._keep(replace(entry, changed=self._clock()))
            return ours

    def finish(self, number: int, sender: str, done: Delivery) -> OutboxEntry | None:
        """Record the outcome of an attempt; None: another sender has the message now."""
        with self._lock:
            entry = self.entry(number)
            if entry.sender != sender or entry.state not in ("sending", "unsure", "approved"):
                return None
            return self._keep(delivered(entry, done, self._clock()))

    def abandon(self, seconds: float = SENDING_SECONDS) -> Sequence[OutboxEntry]:
        """Mark as unsure the messages that have been in sending for so long; return them."""
        with self._lock:
            now = self._clock()
            old = [e for e in self._entries.values() if e.state == "sending" and e.changed <= now - seconds]
            return [self._keep(abandoned(e, now)) for e in old]

    def _keep(self, entry: OutboxEntry) -> OutboxEntry:
        self._entries[entry.number] = entry
        return entry
