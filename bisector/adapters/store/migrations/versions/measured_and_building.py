"""Version 15: where a bisection has measured, and whether it has left its testbed for a build."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

from bisector.model.stored_bisection import ENDED

revision = "15"
down_revision = "14"


def upgrade() -> None:
    """Add the columns; for bisections that go on, the records show where they have measured."""
    op.add_column("scheduling", sa.Column("measured", sa.Text, nullable=False, server_default="[]"))
    op.add_column("scheduling", sa.Column("building", sa.Integer, nullable=False, server_default="0"))
    connection = op.get_bind()
    for name, status in connection.execute(sa.text("SELECT id, status FROM bisections")).all():
        if status not in ENDED and (testbeds := _measured(connection, name)):
            connection.execute(
                sa.text("UPDATE scheduling SET measured = :testbeds WHERE bisection = :id"),
                {"id": name, "testbeds": json.dumps(testbeds)},
            )


def _measured(connection: sa.Connection, name: str) -> list[str]:
    bodies = connection.scalars(
        sa.text("SELECT body FROM events WHERE bisection = :id AND kind = 'record'"), {"id": name}
    )
    found = set()
    for body in bodies:
        try:
            record = dict(json.loads(body))
        except (ValueError, TypeError):  # a damaged record; whoever reads the bisection says so
            continue
        if record.get("type") == "Booted" and record.get("ok"):
            found.add(str(record.get("testbed")))
    return sorted(found)
