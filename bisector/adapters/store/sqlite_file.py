"""A SQLite file as the store uses it: transactions, reads, and errors in words.

Directly through the driver: importing SQLAlchemy takes 0.22 s of CPU time, as long as all the rest of
`perfbisect list`. The statements of `sql_store` are standard SQL with named parameters; what only SQLite
knows is here.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bisector.errors import InfrastructureError

_WAIT_SECONDS = 30.0
"""How long another process's transaction is waited for; each of ours takes a few milliseconds."""

Row = sqlite3.Row
Value = str | bytes | float | int | None


class Constrained(Exception):
    """A row refers to one that does not exist, or exists already."""


class SqliteFile:
    """One connection, used by one thread at a time. Safe in several threads and processes.

    Raises InfrastructureError for a file that cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        with self._reporting():
            # Transactions begin where we say so, not where the driver guesses.
            self._connection = sqlite3.connect(
                path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._connection.row_factory = Row
            self.execute("PRAGMA auto_vacuum=INCREMENTAL")  # without effect on a file that has tables
            self.execute("PRAGMA journal_mode=WAL")  # readers (status, report) never wait for the executor
            self.execute("PRAGMA synchronous=NORMAL")  # in WAL mode safe against kill -9, what we promise
            self.execute("PRAGMA foreign_keys=ON")

    def execute(self, statement: str, **values: Value) -> list[Row]:
        """Execute one statement, in a transaction of its own outside of `transaction`; return its rows.

        Raises Constrained.
        """
        with self._reporting(), self._lock:
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def transaction(self, *, exchanging_tables: bool = False) -> Iterator[None]:
        """Let all that the block executes happen, or nothing of it. No other process writes meanwhile.

        exchanging_tables: a table may be renamed and another made with its name, to which others refer then.
        """
        with self._lock:
            if exchanging_tables:
                self.execute("PRAGMA foreign_keys=OFF")
                self.execute("PRAGMA legacy_alter_table=ON")  # else those that refer to it follow it
            try:
                self.execute("BEGIN IMMEDIATE")
                yield
                self.execute("COMMIT")
            finally:
                with self._reporting():
                    self._connection.rollback()  # does nothing after a commit
                self.execute("PRAGMA foreign_keys=ON")
                self.execute("PRAGMA legacy_alter_table=OFF")

    def has_table(self, name: str) -> bool:
        """Return whether there is a table."""
        known = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name"
        return bool(self.execute(known, name=name))

    def give_back(self) -> int:
        """Give free pages back to the file system; return how many bytes. Costs little."""
        before = self._bytes()
        with self._reporting(), self._lock:
            # Each step of the statement frees one page, and has no row: `execute` would end after the first.
            self._connection.executescript("PRAGMA incremental_vacuum")
        self.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return before - self._bytes()

    def rewrite(self) -> None:
        """Write the file anew without free pages; needs as much space again, and a minute for a gigabyte."""
        self.execute("PRAGMA auto_vacuum=INCREMENTAL")
        self.execute("VACUUM")

    def _bytes(self) -> int:
        (pages,), (size,) = (self.execute(f"PRAGMA {name}")[0] for name in ("page_count", "page_size"))
        return int(pages * size)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise Constrained(str(error)) from error
        except sqlite3.Error as error:
            raise InfrastructureError(
                f"the state file {self._path} cannot be used: {error}",
                cure="check the disk's free space and the folder's permissions ('perfbisect doctor')",
            ) from error
