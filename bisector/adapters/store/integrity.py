"""Integrity checks of a database: numbers with gaps, unreadable graphs, requests and events."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from bisector.adapters.store.database import Database
from bisector.adapters.store.sql_store import SqlStore
from bisector.errors import InfrastructureError
from bisector.schemas.request import read_accepted


def problems(database: Database) -> Iterator[str]:
    """Say in one sentence each what is wrong; reads every graph, request and event."""
    yield from database.damage()
    # Since `dense_after` each event has the number after its predecessor's.
    for row in database.execute(
        "SELECT b.id AS id, b.dense_after AS start, count(e.sequence) AS found, max(e.sequence) AS last "
        "FROM bisections AS b JOIN events AS e ON e.bisection = b.id AND e.sequence > b.dense_after "
        "GROUP BY b.id, b.dense_after HAVING count(e.sequence) <> max(e.sequence) - b.dense_after "
        "ORDER BY b.id"
    ):
        missing = row["last"] - row["start"] - row["found"]
        yield f"the bisection '{row['id']}' lacks {missing} of its events up to number {row['last']}"
    for row in database.execute(
        "SELECT DISTINCT bisection FROM events WHERE bisection NOT IN (SELECT id FROM bisections) "
        "ORDER BY bisection"
    ):
        yield f"there are events of a bisection '{row['bisection']}', which is not there"
    for row in database.execute("SELECT checksum FROM graphs ORDER BY checksum"):
        (graph,) = database.execute(
            "SELECT body FROM graphs WHERE checksum = :checksum", checksum=row["checksum"]
        )
        if hashlib.sha256(graph["body"]).hexdigest() != row["checksum"]:
            yield f"the commit graph {row['checksum'][:12]} is damaged: its checksum is another one"
    known = "graph IN (SELECT checksum FROM graphs)"
    for row in database.execute(f"SELECT id FROM bisections WHERE NOT {known} ORDER BY id"):  # noqa: S608
        yield f"the bisection '{row['id']}': its commit graph is not there"
    store = SqlStore(database)
    for row in database.execute(f"SELECT id FROM bisections WHERE {known} ORDER BY graph, id"):  # noqa: S608
        try:
            read_accepted(store.load(row["id"]).request).the_goal()
            store.records(row["id"])
            store.decisions(row["id"])
        except InfrastructureError as error:
            details = f": {'; '.join(error.details.splitlines())}" if error.details else ""
            where = "" if row["id"] in error.message else f"the bisection '{row['id']}': "
            yield f"{where}{error.message}{details}"
        except ValueError as error:
            yield f"the bisection '{row['id']}': its row cannot be read: {error}"
