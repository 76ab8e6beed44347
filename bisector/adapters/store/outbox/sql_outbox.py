"""The outbox in a SQL database. Every change is decided under one lock: messages are few."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from bisector.adapters.store.database import NO_LIMIT, Database, Row, Value
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

_COLUMNS = (
    "number, about, workload, kind, audience, channel, recipients, subject, body, headers, state, bisection, "
    "created, changed, by_whom, note, sender, attempts, first_attempt, not_before, sent, accepted, refused"
)
_NAMES = _COLUMNS.split(", ")
_ALL = f"SELECT {_COLUMNS} FROM outbox"  # noqa: S608
_INSERT = f"INSERT INTO outbox ({_COLUMNS}) VALUES ({', '.join(f':{name}' for name in _NAMES)})"  # noqa: S608
_REPLACE = f"UPDATE outbox SET {', '.join(f'{n} = :{n}' for n in _NAMES)} WHERE number = :number"  # noqa: S608
_BY_KEY = "about = :about AND workload = :workload AND kind = :kind AND audience = :audience"


class SqlOutbox:
    """mail_ports.Outbox in the database of the bisections; for several threads and processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

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

        def work() -> OutboxEntry | None:
            now, old = self._lock(), self.find(key)
            if old is not None and old.state != "draft":
                return None
            (last,) = self._database.execute("SELECT coalesce(max(number), 0) AS number FROM outbox")
            number = last["number"] + 1 if old is None else old.number
            created = now if old is None else old.created
            entry = OutboxEntry(number, key, channel, message, state, bisection, created, now, by, note)
            return self._keep(entry, _INSERT if old is None else _REPLACE)

        return self._database.transact(work)

    def told_until(self, topic: Topic) -> float | None:
        """Return the time up to which all that happened is in the outbox, None before any `tell_until`."""
        rows = self._database.execute("SELECT value FROM about WHERE key = :key", key=f"told by {topic}")
        return float(rows[0]["value"]) if rows else None

    def tell_until(self, topic: Topic, at: float) -> None:
        """Note that all that happened before a time is in the outbox."""
        self._database.execute(
            "INSERT INTO about (key, value) VALUES (:key, :value) "
            "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            key=f"told by {topic}",
            value=repr(at),
        )

    def entries(self, states: Collection[State] = (), limit: int | None = None) -> Sequence[OutboxEntry]:
        """Return the messages in the given states, all by default, newest first."""
        wanted = {f"state_{number}": state for number, state in enumerate(states)}
        among = f"WHERE state IN ({', '.join(f':{name}' for name in wanted)})" if wanted else ""
        most = NO_LIMIT if limit is None else limit
        return self._read(f"{_ALL} {among} ORDER BY number DESC LIMIT :most", most=most, **wanted)

    def entry(self, number: int) -> OutboxEntry:
        """Return a message. Raises NotFound."""
        found = self._read(f"{_ALL} WHERE number = :number", number=number)
        if not found:
            raise outbox_refusals.unknown(number)
        return found[0]

    def find(self, key: Key) -> OutboxEntry | None:
        """Return the message of a key."""
        found = self._read(
            f"{_ALL} WHERE {_BY_KEY}",
            about=key.about,
            workload=key.workload,
            kind=key.kind,
            audience=key.audience,
        )
        return found[0] if found else None

    def of_bisection(self, bisection: str) -> Sequence[OutboxEntry]:
        """Return the messages of a bisection, oldest first."""
        return self._read(f"{_ALL} WHERE bisection = :bisection ORDER BY number", bisection=bisection)

    def approve(self, number: int, by: str) -> OutboxEntry:
        """Approve a message for sending, or for sending again. Raises NotFound, RequestError."""

        def work(entry: OutboxEntry, now: float) -> OutboxEntry:
            outbox_refusals.check_approval(entry)
            return approved(entry, by, now)

        return self._change(number, work)

    def stop(self, number: int, by: str, why: str) -> OutboxEntry:
        """Stop a message: it is not sent any more. Raises NotFound, RequestError."""

        def work(entry: OutboxEntry, now: float) -> OutboxEntry:
            outbox_refusals.check_stop(entry)
            return replace(entry, state="stopped", by=by, note=why, changed=now)

        return self._change(number, work)

    def claim(
        self, sender: str, daily_limit: int, channels: Collection[Channel] = CHANNELS
    ) -> OutboxEntry | None:
        """Reserve the oldest approved message that is due for one sender."""

        def work() -> OutboxEntry | None:
            now = self._lock()
            (today,) = self._database.execute(
                "SELECT count(*) AS sent FROM outbox WHERE channel = 'mail' AND sent > :since",
                since=now - DAY_SECONDS,
            )
            due = self._read(
                f"{_ALL} WHERE state = 'approved' AND not_before <= :now AND channel IN (:one, :other) "
                "ORDER BY number LIMIT 1",
                now=now,
                one="mail" if "mail" in channels and today["sent"] < daily_limit else "",
                other="webhook" if "webhook" in channels else "",
            )
            return self._keep(claimed(due[0], sender, now)) if due else None

        return self._database.transact(work)

    def still_ours(self, number: int, sender: str) -> bool:
        """Return whether this sender is still the one to send a message, and restart its time."""
        rows = self._database.execute(
            "UPDATE outbox SET changed = seconds_now() WHERE number = :number AND state = 'sending' "
            "AND sender = :sender RETURNING number",
            number=number,
            sender=sender,
        )
        return bool(rows)

    def finish(self, number: int, sender: str, done: Delivery) -> OutboxEntry | None:
        """Record the outcome of an attempt; None: another sender has the message now."""

        def work() -> OutboxEntry | None:
            now, entry = self._lock(), self.entry(number)
            if entry.sender != sender or entry.state not in ("sending", "unsure", "approved"):
                return None
            return self._keep(delivered(entry, done, now))

        return self._database.transact(work)

    def abandon(self, seconds: float = SENDING_SECONDS) -> Sequence[OutboxEntry]:
        """Mark as unsure the messages that have been in sending for so long; return them."""

        def work() -> list[OutboxEntry]:
            now = self._lock()
            old = self._read(
                f"{_ALL} WHERE state = 'sending' AND changed <= :before ORDER BY number", before=now - seconds
            )
            return [self._keep(abandoned(entry, now)) for entry in old]

        return self._database.transact(work)

    def _change(self, number: int, change: Callable[[OutboxEntry, float], OutboxEntry]) -> OutboxEntry:
        def work() -> OutboxEntry:
            now = self._lock()
            return self._keep(change(self.entry(number), now))

        return self._database.transact(work)

    def _lock(self) -> float:
        """Lock the outbox until the transaction ends; return the time."""
        (row,) = self._database.execute(
            "SELECT seconds_now() AS now FROM about WHERE key = 'schema' FOR UPDATE"
        )
        return float(row["now"])

    def _read(self, statement: str, **values: Value) -> list[OutboxEntry]:
        return [_entry(row) for row in self._database.execute(statement, **values)]

    def _keep(self, entry: OutboxEntry, statement: str = _REPLACE) -> OutboxEntry:
        key, message = entry.key, entry.message
        self._database.execute(
            statement,
            number=entry.number,
            about=key.about,
            workload=key.workload,
            kind=key.kind,
            audience=key.audience,
            channel=entry.channel,
            recipients=json.dumps(message.recipients),
            subject=message.subject,
            body=message.text,
            headers=json.dumps(dict(message.headers)),
            state=entry.state,
            bisection=entry.bisection,
            created=entry.created,
            changed=entry.changed,
            by_whom=entry.by,
            note=entry.note,
            sender=entry.sender,
            attempts=entry.attempts,
            first_attempt=entry.first_attempt,
            not_before=entry.not_before,
            sent=entry.sent,
            accepted=json.dumps(entry.accepted),
            refused=json.dumps(dict(entry.refused)),
        )
        return entry


def _entry(row: Row) -> OutboxEntry:
    return OutboxEntry(
        number=row["number"],
        key=Key(row["about"], row["workload"], row["kind"], row["audience"]),
        channel=row["channel"],
        message=Message(
            tuple(json.loads(row["recipients"])), row["subject"], row["body"], json.loads(row["headers"])
        ),
        state=row["state"],
        bisection=row["bisection"],
        created=row["created"],
        changed=row["changed"],
        by=row["by_whom"],
        note=row["note"],
        sender=row["sender"],
        attempts=row["attempts"],
        first_attempt=row["first_attempt"],
        not_before=row["not_before"],
        sent=row["sent"],
        accepted=tuple(json.loads(row["accepted"])),
        refused=json.loads(row["refused"]),
    )
