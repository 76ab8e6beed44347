"""Version 11: alerts of nightly series, with their histories."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "11"
down_revision = "10"

_TEXTS = (
    "series",
    "workload",
    "metric",
    "testbed",
    "repo",
    "last_good",
    "first_bad",
    "tip",
    "direction",
    "unit",
    "finding",
    "triage",
    "why",
    "bisection",
    "subject",
    "back_since",
    "duplicate_of",
    "assignee",
    "state",  # triage or finding
    "culprits",  # a JSON list
    "cause",  # the alert that was first of those that share their cause
)


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "alerts",
        sa.Column("id", sa.Text, primary_key=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in _TEXTS),
        *(sa.Column(name, sa.Float, nullable=False) for name in ("low", "estimate", "high")),
        sa.Column("is_open", sa.Integer, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("changed", sa.Float, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
    )
    op.create_index("alerts_by_age", "alerts", ["created", "id"])
    op.create_index("alerts_by_finding", "alerts", ["finding"])
    op.create_index("alerts_by_series", "alerts", ["series", "created"])
    op.create_table(
        "alert_history",
        sa.Column("alert", sa.Text, sa.ForeignKey("alerts.id"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("alert", "number"),
    )
