"""A database on a PostgreSQL server: connections for several threads, and what to do when the server is away.

Directly through the driver, as with SQLite: psycopg takes half the CPU time of SQLAlchemy to import. What
only PostgreSQL knows is here.

A server that does not answer, is restarted, or closes a connection is waited for, and the statement or the
transaction is given again: in `_on_connection`, for all reads and writes. Whether a COMMIT whose answer was
lost has happened, the server is asked by the transaction's id, so that nothing is stored twice.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import psycopg
from psycopg.rows import dict_row

from bisector.adapters.store.database import Constrained, Value
from bisector.errors import RecordsAway, RecordsUnusable
from bisector.ports import Progress
from bisector.schemas.database_url import DatabaseUrl

FIRST_WAIT_SECONDS = 20.0
"""Before the first answer: a restart takes a few seconds; after that the address is probably wrong."""
WAIT_SECONDS = 900.0
"""After the first answer: an upgrade with a reboot takes less."""
_STOPPED_SECONDS = 2.0
"""Of a server's absence, after a signal to stop: one that restarts may still take the last records."""
_CONNECT_SECONDS = 10
"""One attempt to connect: a host may drop packets."""
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 5.0
"""Between two attempts; each pause is twice the one before it."""
_MOST_ATTEMPTS = 7
"""Of one statement: it may be what crashes the server."""
_IDLE_IN_TRANSACTION = "10s"
"""Then a frozen process loses its locks; our transactions take milliseconds."""
_KEEPALIVE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
"""A host that vanishes is noticed after 25 s; `tcp_user_timeout` is in milliseconds."""

_REFUSED = (
    ("password authentication failed", "the user or the password is wrong: see PGPASSWORD, ~/.pgpass"),
    ("no password supplied", "give the password: PGPASSWORD, ~/.pgpass, or in the address"),
    ("no pg_hba.conf entry", "let this host and user in: pg_hba.conf of the server"),
    ('role "', "make the user on the server (createuser), or mend the address"),
    ('database "', "make the database (createdb), or mend the address; then: perfbisect db upgrade"),
    ("failed to resolve host", "mend the host in the address"),
    ("invalid", "mend the address"),
)
"""Part of a refusal's message -> the cure. Reported at once until the first answer; later the cause may pass.
A server that speaks another language is waited for."""

_AGAIN = frozenset({"40001", "40P01"})
"""SQLSTATEs of a transaction that another one ended: serialization, deadlock."""
_CURES = {
    "53100": "free space on the server's disk",
    "53200": "give the server more memory",
    "42501": "let this user have it (GRANT), or own the tables",
    "25006": "it is a standby: name the primary server in the address",
    "42P01": "the tables are not complete: restore a backup, or use another database",
}
"""SQLSTATE -> the cure."""
_ADDRESS_CURE = "database in perfbisect.toml, or PERFBISECT_DATABASE"

T = TypeVar("T")
Connection = psycopg.Connection[dict[str, Any]]


class PostgresServer:
    """Database on a server. Raises RecordsUnusable where it cannot be used, or did not come back in time."""

    def __init__(
        self,
        address: DatabaseUrl,
        progress: Progress = lambda text: None,
        stop: Callable[[], bool] = lambda: False,
        patience: float = WAIT_SECONDS,
    ) -> None:
        """progress: told while it is waited for; stop: whether to give up; patience: as WAIT_SECONDS."""
        self.name = f"the database {address}"
        self.url = address.for_sqlalchemy
        self._address, self._progress, self._stop = address, progress, stop
        self._idle: list[Connection] = []
        self._lock, self._local = threading.Lock(), threading.local()
        self._wait_seconds, self._patience = FIRST_WAIT_SECONDS, patience
        self._away_since: float | None = None

    def execute(self, statement: str, **values: Value) -> Sequence[dict[str, Any]]:
        """Execute one statement, once, in its own transaction outside of `transact`. Raises Constrained."""

        def work(connection: Connection) -> Sequence[dict[str, Any]]:
            answer = connection.execute(_with_percent(statement), values)
            return answer.fetchall() if answer.description is not None else []

        current = getattr(self._local, "connection", None)
        if current is not None:
            return work(current)
        if statement.startswith("SELECT"):
            return self._on_connection(work)
        return self.transact(lambda: self.execute(statement, **values))

    def transact(self, work: Callable[[], T]) -> T:
        """Let all that `work` executes happen, once, or nothing of it; return what it returns."""
        committing: list[tuple[dict[str, Any], T]] = []

        def attempt(connection: Connection) -> T:
            if committing:  # the answer to the last COMMIT was lost
                begun, done = committing[0]
                if _has_happened(connection, begun):
                    return done
                committing.clear()
            self._local.connection = connection
            try:
                connection.execute("BEGIN")
                done = work()
                marks = _marks(connection)
                if marks is not None:
                    committing.append((marks, done))
                connection.execute("COMMIT")
                return done
            finally:
                del self._local.connection

        assert getattr(self._local, "connection", None) is None, "transactions do not nest"
        return self._on_connection(attempt)

    def has_table(self, name: str) -> bool:
        """Return whether there is a table."""
        (row,) = self.execute("SELECT to_regclass(:name) IS NOT NULL AS known", name=name)
        return bool(row["known"])

    def damage(self) -> Sequence[str]:
        """Return nothing: the server checks its own pages."""
        return ()

    def give_back(self) -> int:
        """Return 0: the server uses the space of removed rows again by itself."""
        return 0

    def rewrite(self) -> None:
        """Do nothing, for the same reason."""

    def close(self) -> None:
        """Close the connections that are not in use."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _on_connection(self, work: Callable[[Connection], T]) -> T:
        """Have work done on a connection; again on another one where it breaks."""
        for attempt in range(1, _MOST_ATTEMPTS + 1):
            connection = self._take()
            try:
                done = work(connection)
            except psycopg.Error as error:
                again = connection.broken or connection.closed or error.sqlstate in _AGAIN
                if not again or attempt == _MOST_ATTEMPTS:
                    raise self._in_words(error) from error
                if error.sqlstate not in _AGAIN:
                    self.close()  # what broke one has broken the others
                    time.sleep((2**attempt - 2) * _FIRST_PAUSE_SECONDS)
            else:
                return done
            finally:
                self._put(connection)
        raise AssertionError("the loop returns or raises")

    def _take(self) -> Connection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _put(self, connection: Connection) -> None:
        """Keep a connection for the next one; what it did not commit is undone."""
        try:
            if not connection.closed:
                connection.rollback()
        except psycopg.Error:
            connection.close()
        if not connection.closed:
            with self._lock:
                self._idle.append(connection)

    def _connect(self) -> Connection:
        """Connect, and wait for a server that is away. Raises RecordsUnusable."""
        began, pause = time.monotonic(), _FIRST_PAUSE_SECONDS
        while True:
            try:
                connection = psycopg.connect(
                    self._address.secret,
                    autocommit=True,
                    row_factory=dict_row,
                    connect_timeout=_CONNECT_SECONDS,
                    application_name="perfbisect",
                    client_encoding="UTF8",  # whatever PGCLIENTENCODING says
                    **_KEEPALIVE,  # type: ignore[arg-type]
                )
                connection.execute(f"SET idle_in_transaction_session_timeout = '{_IDLE_IN_TRANSACTION}'")
            except psycopg.Error as error:
                text = self._without_password(str(error))
                for sign, cure in _REFUSED if self._wait_seconds < WAIT_SECONDS else ():
                    if sign in text:
                        raise RecordsUnusable(
                            f"{self.name} cannot be used: {_reason(text)}", details=text, cure=cure
                        ) from None
                waited, away = (time.monotonic() - since for since in (began, self._away_since or began))
                if waited + pause > self._wait_seconds or (away > _STOPPED_SECONDS and self._stop()):
                    raise RecordsAway(
                        f"{self.name} does not answer, for {away:.0f} s now",
                        details=text,
                        cure=f"start the server, or mend the address: {_ADDRESS_CURE}",
                    ) from None
                if self._away_since is None:
                    self._away_since = began
                    self._progress(
                        f"{self.name} does not answer ({_reason(text)}); "
                        f"waiting for it, up to {self._wait_seconds:.0f} s"
                    )
                self._sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            else:
                if self._away_since is not None:
                    self._away_since = None
                    self._progress(f"{self.name} answers again")
                self._wait_seconds = self._patience
                return connection

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._stop():
            time.sleep(min(seconds, _FIRST_PAUSE_SECONDS))
        time.sleep(_FIRST_PAUSE_SECONDS if self._stop() else 0.0)

    def _in_words(self, error: psycopg.Error) -> Exception:
        if isinstance(error, psycopg.IntegrityError):
            return Constrained(str(error))
        text = self._without_password(str(error))
        return RecordsUnusable(
            f"{self.name} cannot be used: {text.splitlines()[0] if text else type(error).__name__}",
            details=text,
            cure=_CURES.get(
                error.sqlstate or "", "the server's log says more; 'perfbisect db check' looks at it"
            ),
        )

    def _without_password(self, text: str) -> str:
        """Return a message of libpq, which quotes parts of an address that it does not understand."""
        return text.replace(self._address.secret, str(self._address)).strip()


def _marks(connection: Connection) -> dict[str, Any] | None:
    """Return a transaction's number, the log's end, and recovery's end; None where it has written nothing."""
    return connection.execute(
        "SELECT id::text, pg_current_wal_insert_lsn()::text AS written, "
        "pg_last_wal_replay_lsn()::text AS recovered "
        "FROM pg_current_xact_id_if_assigned() AS id WHERE id IS NOT NULL"
    ).fetchone()


def _has_happened(connection: Connection, marks: dict[str, Any]) -> bool:
    """Return whether a transaction was committed; waits until the server knows.

    A server that crashed may use the number again. Its recovery then ended before what we had written.
    """
    while True:
        try:
            row = connection.execute(
                "SELECT CASE WHEN pg_last_wal_replay_lsn() <= %(written)s::pg_lsn "
                "AND pg_last_wal_replay_lsn() IS DISTINCT FROM %(recovered)s::pg_lsn THEN 'lost' "
                "ELSE pg_xact_status(%(id)s::xid8) END AS status",
                marks,
            ).fetchone()
        except psycopg.errors.InvalidParameterValue:  # in the future: it crashed before it wrote of it
            return False
        if row is None or row["status"] != "in progress":
            return row is not None and row["status"] == "committed"
        time.sleep(_FIRST_PAUSE_SECONDS)


def _reason(text: str) -> str:
    """Return why a connection failed, without what libpq says of the address."""
    lines = [line for line in text.splitlines() if "failed: " in line] or text.splitlines()[-1:]
    return "".join(lines[-1:]).rpartition("failed: ")[2].removeprefix("FATAL:").strip()


@lru_cache(maxsize=256)
def _with_percent(statement: str) -> str:
    """Return a statement with its parameters as psycopg has them: `:name` is `%(name)s`."""
    return re.sub(r"(?<!:):(\w+)", r"%(\1)s", statement.replace("%", "%%"))
