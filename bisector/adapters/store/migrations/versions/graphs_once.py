"""Version 3: each graph once, and what lists show in columns of its own. Also the first tables of all.

Version 1 had facts in the column `note` (`notes_v1`), which are read as they are. Version 2 kept a graph with
each bisection, and nothing for lists. Only SQLite files have versions before 3.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from alembic import op

from bisector.errors import PerfbisectError
from bisector.model.commit_graph import CommitGraph
from bisector.model.stored_bisection import Stored, Summary, summary_of
from bisector.schemas import serialization

revision = "3"
down_revision = None

_LAST_EVENTS = 20
"""Events looked through for the time of the last one: of those of a boot only some have a time."""
_TOLD_EVERY = 500
"""Bisections between two lines of progress: about a second."""


def upgrade() -> None:
    """Make the tables; move the bisections of version 1 or 2 there. Events stay where they are."""
    old = sa.inspect(op.get_bind()).has_table("bisections")
    if old:
        op.rename_table("bisections", "bisections_2")
    else:
        op.create_table(
            "about", sa.Column("key", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False)
        )
    graphs = op.create_table(
        "graphs",
        sa.Column("checksum", sa.Text, primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    # What lists read comes first: a row's large values at its end are then never looked at.
    bisections = op.create_table(
        "bisections",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("changed", sa.Float, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("workload", sa.Text),
        sa.Column("good", sa.Text),
        sa.Column("bad", sa.Text),
        sa.Column("ending", sa.Text),
        sa.Column("culprits", sa.Text, nullable=False),
        sa.Column("graph", sa.Text, sa.ForeignKey("graphs.checksum"), nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("conclusion", sa.Text),
    )
    op.create_index("ix_bisections_created", "bisections", ["created"])
    op.create_index("ix_bisections_graph", "bisections", ["graph"])
    if old:
        _move(op.get_bind(), graphs, bisections)
        op.drop_table("bisections_2")
    else:
        op.create_table(
            "events",
            sa.Column("sequence", sa.Integer, primary_key=True),
            sa.Column("bisection", sa.Text, sa.ForeignKey("bisections.id"), nullable=False),
            sa.Column("kind", sa.Text, nullable=False),
            sa.Column("body", sa.Text, nullable=False),
            sa.Column("note", sa.Text, nullable=False),
        )
        op.create_index("ix_events_bisection", "events", ["bisection"])


def _move(connection: sa.Connection, graphs: sa.Table, bisections: sa.Table) -> None:
    progress = op.get_context().opts["progress"]
    names = list(connection.scalars(sa.text("SELECT id FROM bisections_2 ORDER BY created")))
    stored: set[str] = set()
    for number, name in enumerate(names):
        if number % _TOLD_EVERY == 0 and len(names) > _TOLD_EVERY:
            progress(f"converting the state file, once: {number:,} of {len(names):,} bisections")
        row = connection.execute(sa.text("SELECT * FROM bisections_2 WHERE id = :id"), {"id": name}).one()
        checksum = hashlib.sha256(row.graph).hexdigest()
        if checksum not in stored:
            stored.add(checksum)
            connection.execute(graphs.insert().values(checksum=checksum, body=row.graph))
        summary = _summary(connection, row)
        connection.execute(
            bisections.insert().values(
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
                request=row.request,
                conclusion=row.conclusion,
            )
        )


def _summary(connection: sa.Connection, row: sa.Row[Any]) -> Summary:
    """Return the summary of a bisection of version 1 or 2; without its result where that is damaged."""
    empty = CommitGraph((), (), (), 0, 0)
    plain = Stored(row.id, row.created, row.request, row.status, empty)
    changed = _last_time(connection, row)
    if row.conclusion is not None:
        with contextlib.suppress(PerfbisectError, ValueError, IndexError):
            conclusion = serialization.conclusion_from(json.loads(row.conclusion))
            graph = serialization.unpack_graph(row.graph)
            return summary_of(replace(plain, graph=graph, conclusion=conclusion), changed)
    return summary_of(plain, changed)


def _last_time(connection: sa.Connection, row: sa.Row[Any]) -> float:
    """Return when something was recorded last; when the bisection was created if nothing was."""
    last = connection.scalars(
        sa.text("SELECT body FROM events WHERE bisection = :id ORDER BY sequence DESC LIMIT :count"),
        {"id": row.id, "count": _LAST_EVENTS},
    )
    times = [row.created]
    for body in last:
        with contextlib.suppress(ValueError, AttributeError):
            times.append(float(json.loads(body).get("at", 0.0)))
    return float(max(times))
