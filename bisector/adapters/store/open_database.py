"""Opens the database of bisections, so that its tables are those of this version."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from bisector.adapters.store import migration
from bisector.adapters.store.database import Database
from bisector.adapters.store.sqlite_file import SqliteFile, backup_cure
from bisector.adapters.store.state_folder import (
    close_database_file,
    make_closed_or_safe,
    prepare_state_folder,
)
from bisector.adapters.system.files import os_errors_reported
from bisector.errors import InfrastructureError, RecordsUnusable
from bisector.ports import Progress
from bisector.schemas.database_url import DatabaseUrl


def connect(
    where: DatabaseUrl | Path,
    progress: Progress = lambda text: None,
    stop: Callable[[], bool] = lambda: False,
    patience: float | None = None,
) -> Database:
    """Open a database on a server, or open or make a SQLite file, whatever tables it has.

    progress: told when a server is waited for; stop: asked whether it should be no longer; patience: seconds
    for one that has answered before, None: as long as any. Raises InfrastructureError; RequestError for a
    file where every user can write.
    """
    if isinstance(where, DatabaseUrl):
        from bisector.adapters.store.postgres_server import WAIT_SECONDS, PostgresServer

        server = PostgresServer(where, progress, stop, WAIT_SECONDS if patience is None else patience)
        _require_utf8(server)
        return server
    with _making(where.parent):
        make_closed_or_safe(where.parent)
    close_database_file(where)
    return SqliteFile(where)


def open_state_file(
    path: Path,
    before_conversion: Callable[[], None] = lambda: None,
    progress: Progress = lambda text: None,
) -> Database:
    """Open or make the SQLite file of a state folder with the tables of this version; convert earlier ones.

    before_conversion: called before that; it may raise. Raises InfrastructureError: unusable, or of a newer
    version; RequestError: the folder is open to others.
    """
    with _making(path.parent):
        prepare_state_folder(path.parent)
        _require_content(path)
    file = connect(path)
    known = migration.version(file)
    if known < migration.SCHEMA_VERSION:
        if known:
            before_conversion()
        migration.upgrade(file, progress)
    return file


def _require_content(path: Path) -> None:
    """Raise RecordsUnusable for an empty file beside what bisections have left; SQLite would make a new one.

    One that was never filled has none of that: perfbisect was killed before it made the tables.
    """
    left = path.parent / "bisections"
    if path.is_file() and not path.stat().st_size and left.is_dir() and any(left.iterdir()):
        raise RecordsUnusable(f"the state file {path} is damaged: it is empty", cure=backup_cure(path))


def open_server(
    address: DatabaseUrl,
    progress: Progress = lambda text: None,
    stop: Callable[[], bool] = lambda: False,
    patience: float | None = None,
) -> Database:
    """Open a database on a PostgreSQL server. progress, stop, patience: as `connect`.

    Raises InfrastructureError: it cannot be reached, or its tables are of another version. Others use them
    too, so only a person upgrades them.
    """
    server = connect(address, progress, stop, patience)
    known = migration.version(server)
    if known < migration.SCHEMA_VERSION:
        state = f"has tables of an earlier version ({known})" if known else "has no tables of perfbisect yet"
        raise InfrastructureError(f"{server.name} {state}", cure="perfbisect db upgrade")
    return server


def _require_utf8(server: Database) -> None:
    """Raise InfrastructureError where a database cannot hold every text: it would fail amid work."""
    (row,) = server.execute("SELECT current_setting('server_encoding') AS encoding")
    if row["encoding"] != "UTF8":
        raise InfrastructureError(
            f"{server.name} has the encoding {row['encoding']}, which cannot hold every name of a commit",
            cure="make another one: createdb --owner perfbisect --template template0 --encoding UTF8 NAME",
        )


def _making(folder: Path) -> AbstractContextManager[None]:
    return os_errors_reported(
        f"the state folder {folder} cannot be made",
        cure="use another one: PERFBISECT_STATE_DIR, or state_dir in perfbisect.toml",
    )
