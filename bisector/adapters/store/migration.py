"""Whether a database has the tables of this version, and how it gets them.

The version is kept in the table `about`, where it is read without Alembic: importing that takes as long as
`perfbisect list`. The revisions are in `migrations/versions`. They are applied in one transaction: a process
that is killed meanwhile, or a full disk, leaves the tables as they were, and the next one begins again.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from bisector.adapters.store.database import Database
from bisector.errors import InfrastructureError, RecordsUnusable
from bisector.ports import Progress

SCHEMA_VERSION = 15
"""The version of the tables that this program reads and writes: the newest revision."""

_LAST_WITHOUT_ALEMBIC = 3
"""The last version that no revision has written down; the first revision knows those before it."""
_MAX_DIGITS = 20
"""Most digits of a version's number: one with more is damaged."""
_MIGRATION_LOCK = 7_237_021_905
"""Key of PostgreSQL's lock against two upgrades at a time; any number that others do not use."""


def version(database: Database) -> int:
    """Return the version of a database's tables; 0 where there are none.

    Raises InfrastructureError: they are of a newer version than this program.
    """
    if not database.has_table("about"):
        return 0
    rows = database.execute("SELECT value FROM about WHERE key = 'schema'")
    text = rows[0]["value"] if rows else "0"
    if not text.isdecimal() or len(text) > _MAX_DIGITS:
        raise RecordsUnusable(
            f"{database.name} is damaged: its tables have the version '{text[:80]}'",
            cure="restore a backup (docs/how-to/database.md)",
        )
    known = int(text)
    if known > SCHEMA_VERSION:
        raise InfrastructureError(
            f"{database.name} was written by a newer perfbisect "
            f"(state version {known}; known here: {SCHEMA_VERSION})",
            cure="use that version, or another database: PERFBISECT_DATABASE or PERFBISECT_STATE_DIR",
        )
    return known


def upgrade(database: Database, progress: Progress) -> None:
    """Make the tables, or convert those of an earlier version: all or nothing.

    10,000 bisections of version 1 or 2 take half a minute. Raises InfrastructureError.
    """
    import sqlalchemy as sa
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["progress"] = progress
    engine = sa.create_engine(database.url, poolclass=sa.NullPool)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _own_transactions)
        sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    known: int | None = None
    try:
        with engine.begin() as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
            known = version(database)  # another process may have been first
            if known == SCHEMA_VERSION:
                return
            config.attributes["connection"] = connection
            if known == _LAST_WITHOUT_ALEMBIC:
                command.stamp(config, str(known))
            command.upgrade(config, "head")
            connection.execute(sa.text("DELETE FROM about WHERE key = 'schema'"))
            connection.execute(
                sa.text("INSERT INTO about (key, value) VALUES ('schema', :version)"),
                {"version": str(SCHEMA_VERSION)},
            )
    except sa.exc.DBAPIError as error:
        raise InfrastructureError(
            f"{database.name} cannot be {'made' if known == 0 else 'upgraded'}: {error.orig}",
            cure="nothing is changed; mend the cause (free space, permissions) and give the command again",
        ) from error
    finally:
        engine.dispose()
    if known:
        # The space of the old tables; where the disk is too full for that, it is used for new records.
        with contextlib.suppress(InfrastructureError):
            database.rewrite()


def _own_transactions(connection: object, record: object) -> None:
    """Let SQLAlchemy begin transactions, so that tables are made in them too; references keep their names."""
    connection.isolation_level = None  # type: ignore[attr-defined]
    connection.execute("PRAGMA legacy_alter_table=ON")  # type: ignore[attr-defined]
