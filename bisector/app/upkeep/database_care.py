"""Use cases of `perfbisect db`: upgrade, check, move and prune the database of bisections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.store import migration
from bisector.adapters.store.database import Database
from bisector.adapters.store.open_database import connect
from bisector.adapters.store.sql_coordinator import SqlCoordinator
from bisector.app.wiring import Wiring
from bisector.engine.state_lock import find_holder
from bisector.errors import RequestError
from bisector.model.leases import HEARTBEAT_TTL_SECONDS
from bisector.schemas.database_url import DatabaseUrl

DAY_SECONDS = 86400.0
CHANGES_DAYS = 365.0
"""Least days that the log of changes at the web interface is kept, also with a shorter --keep: chosen."""
MESSAGES_DAYS = 60.0
"""Least days that a message is kept: twice the 30 days in which an ending without a message is reported, so
that nothing is reported twice."""
_OLD_MESSAGES = (
    "FROM outbox WHERE kind IN ('event', 'ended', 'weekly') AND state IN ('sent', 'stopped') "
    "AND changed < :t AND number < (SELECT max(number) FROM outbox)"
)
"""Messages about culprits stay, so that nothing is reported twice and fixes are followed up. So does the last
message, or its number would be used again."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What `check` found. version: of the tables, 0 where there are none; newest: what this program needs.

    bisections, events: how many; None where the tables are of an earlier version.
    """

    name: str
    version: int
    newest: int
    bisections: int | None
    events: int | None
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Garbage:
    """What `prune` removes: rows that nothing needs any more."""

    executors: int
    leases: int
    reservations: int
    changes: int
    messages: int


def versions(wiring: Wiring) -> tuple[str, int, int]:
    """Return the database's name, the version of its tables (0: none), and that of this program.

    Raises InfrastructureError: it cannot be reached, or is newer.
    """
    database = wiring.connect_database()
    return database.name, migration.version(database), migration.SCHEMA_VERSION


def upgrade(wiring: Wiring) -> None:
    """Make the tables, or bring them to this version. Raises RequestError while a worker uses them."""
    database = wiring.connect_database()
    if migration.version(database):
        _refuse_users(wiring, database)
    migration.upgrade(database, wiring.note)


def check(wiring: Wiring) -> Checked:
    """Look for what is wrong. Raises InfrastructureError: it cannot be reached, or is newer."""
    from bisector.adapters.store.integrity import problems

    name, version, newest = versions(wiring)
    if version < newest:
        how = "there are no tables" if version == 0 else f"the tables are of version {version}, not {newest}"
        return Checked(name, version, newest, None, None, (f"{how}: perfbisect db upgrade",))
    database = wiring.connect_database()
    (row,) = database.execute(
        "SELECT (SELECT count(*) FROM bisections) AS bisections, (SELECT count(*) FROM events) AS events"
    )
    return Checked(name, version, newest, row["bisections"], row["events"], tuple(problems(database)))


def target_of(text: str) -> DatabaseUrl | Path:
    """Return what `move` shall fill: an address of PostgreSQL, or a file. Raises RequestError."""
    if "://" not in text:
        return Path(text).expanduser().absolute()
    try:
        return DatabaseUrl(text)
    except ValueError as error:
        raise RequestError(
            f"TARGET {error}", cure="for a SQLite file, write its path: ./perfbisect.sqlite"
        ) from error


def move(wiring: Wiring, to: DatabaseUrl | Path) -> dict[str, int]:
    """Copy all to another database, which has no rows yet; return the rows of each table.

    Raises RequestError: there are rows, or a worker uses one of the two; InfrastructureError.
    """
    from bisector.adapters.store.copy_tables import copy_tables

    source = wiring.database
    _refuse_users(wiring, source)
    new_file = isinstance(to, Path) and not to.exists()
    target = connect(to, wiring.note)
    if source.url == target.url:
        raise RequestError(f"{source.name} is the one that is used already", cure="name another TARGET")
    if migration.version(target) < migration.SCHEMA_VERSION:
        migration.upgrade(target, wiring.note)
    _refuse_users(wiring, target)
    try:
        return copy_tables(source, target, wiring.note)
    except BaseException:
        if new_file:
            _remove_file(Path(str(to)))
        raise


def find_garbage(wiring: Wiring, keep_days: float) -> Garbage:
    """Return what ended so many days ago and nothing needs: bisections are `perfbisect prune`'s."""
    before = wiring.coordinator.now() - keep_days * DAY_SECONDS
    (past,) = wiring.database.execute("SELECT count(*) AS n FROM reservations WHERE ends < :t", t=before)
    (old,) = wiring.database.execute(
        "SELECT count(*) AS n FROM changes WHERE at < :t", t=_before(wiring, keep_days, CHANGES_DAYS)
    )
    (told,) = wiring.database.execute(
        f"SELECT count(*) AS n {_OLD_MESSAGES}", t=_before(wiring, keep_days, MESSAGES_DAYS)
    )
    (unused,) = wiring.database.execute(
        "SELECT (SELECT count(*) FROM executors WHERE fenced = 1 AND seen < :t) AS executors, "
        "(SELECT count(*) FROM leases WHERE executor IS NULL AND used < :t) AS leases",
        t=before,
    )
    return Garbage(
        executors=unused["executors"],
        leases=unused["leases"],
        reservations=past["n"],
        changes=old["n"],
        messages=told["n"],
    )


def remove_garbage(wiring: Wiring, keep_days: float) -> int:
    """Remove what `find_garbage` finds; return the bytes that the file system has back, if anybody knows."""
    wiring.coordinator.forget_unused(keep_days * DAY_SECONDS)
    before = wiring.coordinator.now() - keep_days * DAY_SECONDS
    wiring.database.execute("DELETE FROM reservations WHERE ends < :t", t=before)
    wiring.database.execute("DELETE FROM changes WHERE at < :t", t=_before(wiring, keep_days, CHANGES_DAYS))
    wiring.database.execute(f"DELETE {_OLD_MESSAGES}", t=_before(wiring, keep_days, MESSAGES_DAYS))
    return wiring.store.give_back()


def _before(wiring: Wiring, keep_days: float, least_days: float) -> float:
    """Return the time before which rows are removed. least_days: kept even with a shorter --keep."""
    return wiring.coordinator.now() - max(keep_days, least_days) * DAY_SECONDS


def _refuse_users(wiring: Wiring, database: Database) -> None:
    """Raise RequestError while another process works with a database."""
    holder = find_holder(wiring.settings.state_dir)
    if holder is not None:
        raise RequestError(str(holder), cure="wait until it ends, or stop it: Ctrl-C there")
    if database.has_table("executors"):
        living = _living(database)
        if living:
            raise RequestError(
                f"{database.name} is used by {', '.join(living)}",
                cure="stop the workers first; one that was killed counts as dead after "
                f"{HEARTBEAT_TTL_SECONDS:.0f} s",
            )


def _living(database: Database) -> Sequence[str]:
    executors = SqlCoordinator(database).executors()
    return [f"'{e.name}'" for e in executors if not e.fenced and e.silent < HEARTBEAT_TTL_SECONDS]


def _remove_file(path: Path) -> None:
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)
