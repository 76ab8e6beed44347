"""Version 5: how urgent a bisection is, whose it is, what people did to it, and how far it is.

In a table of its own: a row of `bisections` has large values, which lists do not read. `machine_hours` has
the testbeds' time that an owner took, by hour.
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

from bisector.model.stored_bisection import ENDED, NORMAL_PRIORITY, testbeds_of

revision = "5"
down_revision = "4"


def upgrade() -> None:
    """Add the tables; bisections of earlier versions have the normal priority, and no owner is known."""
    scheduling = op.create_table(
        "scheduling",
        sa.Column("bisection", sa.Text, sa.ForeignKey("bisections.id"), primary_key=True),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("testbeds", sa.Text, nullable=False),  # a JSON list
        sa.Column("action", sa.Text),  # what somebody did last; none: nobody did anything
        sa.Column("action_by", sa.Text),
        sa.Column("action_why", sa.Text),
        sa.Column("action_at", sa.Float),
        sa.Column("boots", sa.Integer, nullable=False),
        sa.Column("live", sa.Text, nullable=False),  # a JSON object: boot -> testbed
        sa.Column("left_seconds", sa.Float),
        sa.Column("decided", sa.Float),
    )
    op.create_index("ix_bisections_status", "bisections", ["status"])
    op.create_table(
        "machine_hours",
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("hour", sa.Integer, nullable=False),  # since the epoch
        sa.Column("seconds", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("owner", "hour"),
    )
    connection = op.get_bind()
    rows = connection.execute(sa.text("SELECT id, status, request FROM bisections")).all()
    for name, status, request in rows:
        boots, live = (0, {}) if status in ENDED else _progress(connection, name)
        connection.execute(
            scheduling.insert().values(
                bisection=name,
                priority=NORMAL_PRIORITY,
                owner="",
                testbeds=json.dumps(testbeds_of(request)),
                boots=boots,
                live=json.dumps(live),
            )
        )


def _progress(connection: sa.Connection, name: str) -> tuple[int, dict[str, str]]:
    """Return how many boots succeeded, and the testbeds of those that have not ended."""
    bodies = connection.scalars(
        sa.text("SELECT body FROM events WHERE bisection = :id AND kind = 'record' ORDER BY sequence"),
        {"id": name},
    )
    boots, live = 0, {}
    for body in bodies:
        try:
            record: dict[str, Any] = dict(json.loads(body))
        except (ValueError, TypeError):  # a damaged record; whoever reads the bisection says so
            continue
        if record.get("type") == "Booted" and record.get("ok"):
            boots += 1
            live[str(record.get("boot"))] = str(record.get("testbed"))
        elif record.get("type") == "Left":
            live.pop(str(record.get("boot")), None)
    return boots, live
