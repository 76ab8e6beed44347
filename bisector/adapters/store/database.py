"""The database port of the store; SQLite (`sqlite_file`) and PostgreSQL (`postgres_server`) implement it.

The statements are standard SQL with named parameters (`:name`), the same for both. `seconds_now()` is the
time in seconds since the epoch by the clock that all users of the database share. `FOR UPDATE`, `FOR SHARE`
end a SELECT whose rows nobody else may change, or may only read with `FOR SHARE`, until the transaction ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

Value = str | bytes | float | int | None
T = TypeVar("T")

NO_LIMIT = (1 << 63) - 1
"""The largest number that SQL databases count to: of rows, where a LIMIT must stand."""


class Constrained(Exception):
    """A row refers to one that does not exist, or exists already."""


class Row(Protocol):
    """One row of an answer."""

    def __getitem__(self, column: str, /) -> Any:  # noqa: ANN401 - as the column is declared
        """Return the value of a column."""
        ...


class Database(Protocol):
    """A database, safe to use from several threads and processes.

    name: what messages call it; no password is in it. url: for SQLAlchemy, with the password.
    """

    name: str
    url: str

    def execute(self, statement: str, **values: Value) -> Sequence[Row]:
        """Execute one statement, in a transaction of its own outside of `transact`; return its rows.

        Where the connection breaks, it is executed again unless it has taken effect.
        Raises Constrained, InfrastructureError.
        """
        ...

    def transact(self, work: Callable[[], T]) -> T:
        """Let all that `work` executes happen, once, or nothing of it; return what it returns.

        Where the connection breaks, `work` is called again unless the first call has taken effect, so it does
        nothing but execute and return.
        """
        ...

    def has_table(self, name: str) -> bool:
        """Return whether there is a table."""
        ...

    def damage(self) -> Sequence[str]:
        """Return what the database finds wrong in its own files, if it can check them."""
        ...

    def give_back(self) -> int:
        """Give the space of removed rows back to the file system; return how many bytes, if anybody knows."""
        ...

    def rewrite(self) -> None:
        """Write all tables anew without the space of removed rows."""
        ...


def read_clock(database: Database) -> float:
    """Return the time by the clock that all users of a database share."""
    (row,) = database.execute("SELECT seconds_now() AS now")
    return float(row["now"])
