"""The tables of a state file, and how a file of an earlier version becomes one of this version.

A file is converted in one transaction when it is opened. A process that is killed meanwhile, or a full disk,
leaves it as it was, and the next one begins again: 10,000 bisections take half a minute.

Versions: 1 had facts in the column `note` (`notes_v1`), which are read as they are. 2 kept a graph with each
bisection, and nothing for lists. 3 keeps each graph once, and what lists show in columns of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from bisector.adapters.store.sqlite_file import Row, SqliteFile
from bisector.errors import InfrastructureError, PerfbisectError
from bisector.model.commit_graph import CommitGraph
from bisector.model.stored_bisection import Stored, Summary, summary_of
from bisector.ports import Progress
from bisector.schemas import serialization

SCHEMA = 3

_TABLES = (
    "CREATE TABLE about (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE events (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT,
        bisection TEXT NOT NULL REFERENCES bisections (id),
        kind TEXT NOT NULL,
        body TEXT NOT NULL,
        note TEXT NOT NULL
    )""",
    "CREATE INDEX ix_events_bisection ON events (bisection)",
)
"""Tables that are the same in all versions."""

_TABLES_SINCE_3 = (
    "CREATE TABLE graphs (checksum TEXT NOT NULL PRIMARY KEY, body BLOB NOT NULL)",
    # What lists read comes first: a row's large values at its end are then never looked at.
    """CREATE TABLE bisections (
        id TEXT NOT NULL PRIMARY KEY,
        created FLOAT NOT NULL,
        changed FLOAT NOT NULL,
        status TEXT NOT NULL,
        workload TEXT,
        good TEXT,
        bad TEXT,
        ending TEXT,
        culprits TEXT NOT NULL,
        graph TEXT NOT NULL REFERENCES graphs (checksum),
        request TEXT NOT NULL,
        conclusion TEXT
    )""",
    "CREATE INDEX ix_bisections_created ON bisections (created)",
    "CREATE INDEX ix_bisections_graph ON bisections (graph)",
)

_LAST_EVENTS = 20
"""Events looked through for the time of the last one: of those of a boot only some have a time."""
_TOLD_EVERY = 500
"""Bisections between two lines of progress: about a second."""


def prepare(file: SqliteFile, path: Path, before: Callable[[], None], progress: Progress) -> None:
    """Make the tables, or convert those of an earlier version. Raises InfrastructureError: a newer version.

    before: called before a file is converted; it may raise.
    """
    known = _version(file)
    if 0 < known < SCHEMA:
        before()
    if known < SCHEMA:
        with file.transaction(exchanging_tables=True):
            known = _version(file)  # another process may have been first
            if known == 0:
                _create(file)
            elif known < SCHEMA:
                _convert(file, progress)
        if 0 < known < SCHEMA:
            # The graphs' space; where the disk is too full for that, it is used for new records.
            with contextlib.suppress(InfrastructureError):
                file.rewrite()
    if known > SCHEMA:
        raise InfrastructureError(
            f"{path} was written by a newer perfbisect (state version {known}; known here: {SCHEMA})",
            cure="use that version, or another folder: PERFBISECT_STATE_DIR",
        )


def add(
    file: SqliteFile,
    summary: Summary,
    graph: bytes,
    request: str,
    conclusion: str | None,
) -> None:
    """Add a bisection with its graph. Raises Constrained: the id exists."""
    checksum = hashlib.sha256(graph).hexdigest()
    file.execute(
        "INSERT INTO graphs (checksum, body) VALUES (:checksum, :body) ON CONFLICT (checksum) DO NOTHING",
        checksum=checksum,
        body=graph,
    )
    file.execute(
        "INSERT INTO bisections (id, created, changed, status, workload, good, bad, ending, culprits, graph, "
        "request, conclusion) VALUES (:id, :created, :changed, :status, :workload, :good, :bad, :ending, "
        ":culprits, :graph, :request, :conclusion)",
        id=summary.id,
        created=summary.created,
        changed=summary.changed,
        status=summary.status,
        workload=summary.workload,
        good=summary.good,
        bad=summary.bad,
        ending=summary.ending.value if summary.ending is not None else None,
        culprits=" ".join(summary.culprits),
        graph=checksum,
        request=request,
        conclusion=conclusion,
    )


@lru_cache(maxsize=1)
def decode_graph(body: bytes) -> CommitGraph:
    """Read a packed graph; quick for the one that was read last. Raises InfrastructureError."""
    try:
        return serialization.unpack_graph(body)
    except ValueError as error:
        raise InfrastructureError(
            "a stored commit graph cannot be read",
            details=str(error),
            cure="the state file is damaged: 'perfbisect start' with the same request begins anew",
        ) from error


def _version(file: SqliteFile) -> int:
    if not file.has_table("about"):
        return 0
    rows = file.execute("SELECT value FROM about WHERE key = 'schema'")
    return int(rows[0]["value"]) if rows else 0


def _create(file: SqliteFile) -> None:
    for statement in (*_TABLES, *_TABLES_SINCE_3):
        file.execute(statement)
    file.execute("INSERT INTO about (key, value) VALUES ('schema', :version)", version=str(SCHEMA))


def _convert(file: SqliteFile, progress: Progress) -> None:
    """Move the bisections of version 1 or 2 to the tables of version 3; events stay where they are."""
    file.execute("ALTER TABLE bisections RENAME TO bisections_2")
    for statement in _TABLES_SINCE_3:
        file.execute(statement)
    names = [row["id"] for row in file.execute("SELECT id FROM bisections_2 ORDER BY created")]
    for number, name in enumerate(names):
        if number % _TOLD_EVERY == 0 and len(names) > _TOLD_EVERY:
            progress(f"converting the state file, once: {number:,} of {len(names):,} bisections")
        (row,) = file.execute("SELECT * FROM bisections_2 WHERE id = :id", id=name)
        add(file, _summary(file, row), row["graph"], row["request"], row["conclusion"])
    file.execute("DROP TABLE bisections_2")
    file.execute("UPDATE about SET value = :version WHERE key = 'schema'", version=str(SCHEMA))


def _summary(file: SqliteFile, row: Row) -> Summary:
    """Return the summary of a bisection of version 1 or 2; without its result where that is damaged."""
    empty = CommitGraph((), (), (), 0, 0)
    plain = Stored(row["id"], row["created"], row["request"], row["status"], empty)
    changed = _last_time(file, row)
    if row["conclusion"] is not None:
        with contextlib.suppress(PerfbisectError, ValueError, IndexError):
            conclusion = serialization.conclusion_from(json.loads(row["conclusion"]))
            return summary_of(
                replace(plain, graph=decode_graph(row["graph"]), conclusion=conclusion), changed
            )
    return summary_of(plain, changed)


def _last_time(file: SqliteFile, row: Row) -> float:
    """Return when something was recorded last; when the bisection was created if nothing was."""
    last = file.execute(
        "SELECT body FROM events WHERE bisection = :id ORDER BY sequence DESC LIMIT :count",
        id=row["id"],
        count=_LAST_EVENTS,
    )
    times = [row["created"]]
    for event in last:
        with contextlib.suppress(ValueError, AttributeError):
            times.append(float(json.loads(event["body"]).get("at", 0.0)))
    return float(max(times))
