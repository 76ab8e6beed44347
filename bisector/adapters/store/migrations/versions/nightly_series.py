"""Version 14: nightly series, their nights and what was measured in them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "14"
down_revision = "13"


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=nullable)


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "series",
        sa.Column("name", sa.Text, primary_key=True),
        *(_text(name) for name in ("repo", "branch", "workload", "recipe", "testbed", "cron", "time_zone")),
        sa.Column("budget", sa.Float, nullable=False),
        sa.Column("boots", sa.Integer, nullable=False),
        _text("reference"),
        _text("threshold", nullable=True),
        *(_text(name) for name in ("state", "why", "created_by")),
        sa.Column("created", sa.Float, nullable=False),
    )
    op.create_table(
        "nights",
        sa.Column("series", sa.Text, sa.ForeignKey("series.name"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("scheduled", sa.Float, nullable=False),
        sa.Column("place", sa.Float, nullable=False),
        *(_text(name) for name in ("kind", "state", "commit", "bisection", "why", "note")),
        _text("verdict", nullable=True),  # a JSON object
        _text("confirmation"),
        _text("confirmed", nullable=True),
        sa.Column("new_level", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("series", "number"),
    )
    op.create_table(
        "points",
        sa.Column("series", sa.Text, nullable=False),
        sa.Column("night", sa.Integer, nullable=False),
        *(_text(name) for name in ("boot", "commit", "testbed")),
        sa.Column("reference", sa.Integer, nullable=False),
        _text("values"),  # a JSON list
        sa.Column("at", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("series", "night", "boot"),
        sa.ForeignKeyConstraint(["series", "night"], ["nights.series", "nights.number"]),
    )
