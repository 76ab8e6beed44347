"""Copies all that a database holds to another one, of either kind, and compares what arrived."""

from __future__ import annotations

import hashlib

import sqlalchemy as sa

from bisector.adapters.store.database import Database
from bisector.errors import InfrastructureError, RequestError
from bisector.ports import Progress

_OWN = frozenset({"about", "alembic_version", "executors", "sessions", "trials"})
"""Tables that each database has for itself: its version, and who works with it or has logged in now. Of
`about` only the rows of messages go along."""
_ROWS = 200
"""Rows that are written at once: chosen, since an event has a few kilobytes."""


def copy_tables(source: Database, target: Database, progress: Progress) -> dict[str, int]:
    """Copy all rows into empty tables of the same version, all or nothing; return how many of each table.

    Raises RequestError: the target has rows. InfrastructureError: something failed, or what arrived differs.
    """
    engines = [sa.create_engine(database.url, poolclass=sa.NullPool) for database in (source, target)]
    try:
        with engines[0].connect() as old, engines[1].begin() as new:
            if old.dialect.name == "postgresql":  # one view of all tables; SQLite has it by itself
                old = old.execution_options(isolation_level="REPEATABLE READ")
            tables = sa.MetaData()
            tables.reflect(old)
            copied = [table for table in tables.sorted_tables if table.name not in _OWN]
            for table in copied:
                if new.execute(sa.select(table).limit(1)).first() is not None:
                    raise RequestError(
                        f"{target.name} is not empty: it has rows in '{table.name}'",
                        cure="name a new database; nothing was changed",
                    )
            counts = {table.name: _copy(old, new, table, progress) for table in copied}
            _free_leases(new, tables.tables["leases"])
            _copy_progress(old, new, tables.tables["about"])
            return counts
    except sa.exc.DBAPIError as error:
        raise InfrastructureError(
            f"the rows cannot be copied to {target.name}: {error.orig}",
            cure="nothing was changed; mend the cause and give the command again",
        ) from error
    finally:
        for engine in engines:
            engine.dispose()


def _free_leases(new: sa.Connection, leases: sa.Table) -> None:
    """Free all copied leases, without changing their epochs.

    A killed worker still has its leases, but workers are not copied: nobody would find it dead there.
    """
    new.execute(sa.update(leases).values(executor=None, wanted_by=None, wanted_at=None))


def _copy_progress(old: sa.Connection, new: sa.Connection, about: sa.Table) -> None:
    """Copy the times up to which all that happened has its messages, in place of the new database's own."""
    told = sa.select(about).where(about.c.key.like("told by %"))
    rows = [dict(row) for row in old.execute(told).mappings()]
    new.execute(sa.delete(about).where(about.c.key.like("told by %")))  # of workers that used it already
    if rows:
        new.execute(about.insert(), rows)


def _copy(old: sa.Connection, new: sa.Connection, table: sa.Table, progress: Progress) -> int:
    """Copy one table; return how many rows it has. Raises InfrastructureError: another content arrived."""
    progress(f"copying '{table.name}'")
    rows = old.execute(sa.select(table).execution_options(yield_per=_ROWS)).mappings()
    for part in rows.partitions():
        new.execute(table.insert(), [dict(row) for row in part])
    (count, checksum), arrived = _checksum(old, table), _checksum(new, table)
    if arrived != (count, checksum):
        raise InfrastructureError(
            f"what arrived in '{table.name}' is not what was sent: {arrived[0]:,} of {count:,} rows",
            cure="nothing was changed; check the disks of both databases, and give the command again",
        )
    return count


def _checksum(connection: sa.Connection, table: sa.Table) -> tuple[int, str]:
    """Return how many rows a table has, and the SHA-256 of all values; the order of rows does not matter."""
    count, total = 0, 0
    for row in connection.execute(sa.select(table).execution_options(yield_per=_ROWS)):
        values = [bytes(value) if isinstance(value, memoryview) else value for value in row]
        total ^= int.from_bytes(hashlib.sha256(repr(values).encode()).digest(), "big")
        count += 1
    return count, f"{total:064x}"
