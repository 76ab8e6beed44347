"""Version 7: health checks of testbeds, and when each testbed was used last."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "7"
down_revision = "5"


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "health_points",
        sa.Column("testbed", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("kernel", sa.Text, nullable=False),  # a JSON object
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column("measured", sa.Text, nullable=False),  # a JSON list
        sa.PrimaryKeyConstraint("testbed", "number"),
    )
    op.create_table(
        "testbed_uses",
        sa.Column("testbed", sa.Text, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
    )
