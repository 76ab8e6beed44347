"""A SQLite file as the store's database: transactions, reads, and errors in words.

Directly through the driver: importing SQLAlchemy takes 0.16 s of CPU time, as long as all the rest of
`perfbisect list`. What only SQLite knows is here.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from bisector.adapters.store.database import Constrained, Value
from bisector.errors import RecordsFull, RecordsUnusable

_WAIT_SECONDS = 30.0
"""How long another process's transaction is waited for; each of ours takes a few milliseconds."""

_PRIMARY_CODE = 0xFF
"""Of SQLite's codes of errors: what kind it is; the bits above say where."""

T = TypeVar("T")


class SqliteFile:
    """Database in a file: one connection, used by one thread at a time.

    Raises RecordsUnusable for a file that cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = f"the state file {path}"
        self.url = f"sqlite:///{path}"
        self._lock = threading.RLock()
        self._open: sqlite3.Connection | None = None
        self._alone = False  # whether other processes are kept out while it is open
        with self._reporting():
            self._use()
            self._let_others_in()

    def execute(self, statement: str, **values: Value) -> list[sqlite3.Row]:
        """Execute one statement, in a transaction of its own outside of `transact`; return its rows.

        Raises Constrained.
        """
        # SQLite locks no rows: a transaction that writes is the only one from its beginning on.
        statement = statement.removesuffix(" FOR UPDATE").removesuffix(" FOR SHARE")
        with self._reporting(), self._lock:
            try:
                return self._use().execute(statement, values).fetchall()
            finally:
                self._let_others_in()

    def transact(self, work: Callable[[], T]) -> T:
        """Let all that `work` executes happen, or nothing of it. No other process writes meanwhile."""
        with self._lock:
            try:
                self.execute("BEGIN IMMEDIATE")
                done = work()
                self.execute("COMMIT")
            finally:
                with self._reporting():
                    if self._open is not None:
                        self._open.rollback()  # does nothing after a commit
                    self._let_others_in()
        return done

    def has_table(self, name: str) -> bool:
        """Return whether there is a table."""
        known = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name"
        return bool(self.execute(known, name=name))

    def damage(self) -> list[str]:
        """Return what SQLite finds wrong in the file."""
        found = [str(row[0]) for row in self.execute("PRAGMA quick_check")]
        return [f"{self.name}: {line}" for line in found if line != "ok"]

    def give_back(self) -> int:
        """Give free pages back to the file system; return how many bytes. Costs little."""
        before = self._bytes()
        with self._reporting(), self._lock:
            # Each step of the statement frees one page, and has no row: `execute` would end after the first.
            self._use().executescript("PRAGMA incremental_vacuum")
        self.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return before - self._bytes()

    def rewrite(self) -> None:
        """Write the file anew without free pages; needs as much space again, and a minute for a gigabyte."""
        self.execute("PRAGMA auto_vacuum=INCREMENTAL")
        self.execute("VACUUM")

    def _use(self) -> sqlite3.Connection:
        """Return the open file; where its disk has no room for the log's index, that is in memory, alone."""
        if self._open is None:
            self._alone = False
            try:
                self._open = _opened(self._path)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_IOERR_SHMSIZE:
                    raise
                self._alone = True
                self._open = _opened(self._path, "PRAGMA locking_mode=EXCLUSIVE")
        return self._open

    def _let_others_in(self) -> None:
        """Close a file that keeps others out, so that they wait for what is done, not for this process."""
        if self._alone and self._open is not None and not self._open.in_transaction:
            self._open.close()
            self._open = None

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
            raise self._unusable(error) from error

    def _unusable(self, error: sqlite3.Error) -> RecordsUnusable:
        """Return the error for what SQLite says, with what helps; of a damaged file that is a backup."""
        code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE
        if self._path.is_dir():
            return RecordsUnusable(
                f"{self.name} cannot be used: it is a folder", cure=f"move it away; {backup_cure(self._path)}"
            )
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return RecordsUnusable(f"{self.name} is damaged: {error}", cure=backup_cure(self._path))
        if code == sqlite3.SQLITE_FULL:
            return RecordsFull(
                f"{self.name} cannot be used: {error}",
                cure="free some space: 'perfbisect prune' works on a full disk, too",
            )
        cure = "check the disk's free space and the folder's permissions ('perfbisect doctor')"
        if self._path.parent.is_dir() and not os.access(self._path.parent, os.W_OK):
            cure = (
                f"{self._path.parent} may not be written: have its owner give the right to, or use another "
                "folder: PERFBISECT_STATE_DIR, or state_dir in perfbisect.toml"
            )
        return RecordsUnusable(f"{self.name} cannot be used: {error}", cure=cure)


def backup_cure(path: Path) -> str:
    """Return how a backup is restored, as docs/how-to/database.md has it."""
    beside = f"{path.name}-wal and {path.name}-shm"
    return (
        f"restore a backup: while nothing runs, put it in place of {path}, and remove {beside} "
        "beside it; without one, move these files away, and 'perfbisect import' what was exported"
    )


def _opened(path: Path, *before: str) -> sqlite3.Connection:
    """Open a SQLite file. before: statements that come first. Raises sqlite3.Error."""
    # Transactions begin where we say so, not where the driver guesses.
    connection = sqlite3.connect(
        _address(path), uri=True, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    connection.create_function("seconds_now", 0, lambda: time.time())
    try:
        for statement in before:
            connection.execute(statement)
        # Without effect on a file that has tables, where it waits for other processes' transactions.
        if not connection.execute("PRAGMA page_count").fetchone()[0]:
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute("PRAGMA journal_mode=WAL")  # readers (status, report) never wait for the executor
        connection.execute("PRAGMA synchronous=NORMAL")  # in WAL mode safe against kill -9, what we promise
        connection.execute("PRAGMA foreign_keys=ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _address(path: Path) -> str:
    """Return how SQLite opens a file: one in a folder that may not be written, only to be read.

    It would make its log and the log's index beside the file, even to read. Where there is no log, nobody has
    the file open, and it is read as one that does not change. Who may write there, and does so during a
    command that reads, makes that command fail or tell of both states, but damages nothing.
    """
    readable = path.exists() and not os.access(path.parent, os.W_OK)
    quiet = readable and not path.with_name(f"{path.name}-wal").exists()
    return f"{path.absolute().as_uri()}{'?immutable=1' if quiet else ''}"
