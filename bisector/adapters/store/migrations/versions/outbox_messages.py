"""Version 12: the outbox, messages that leave the lab and what became of each."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "12"
down_revision = "11"


def upgrade() -> None:
    """Add the table; of each key there is one message."""
    op.create_table(
        "outbox",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("about", sa.Text, nullable=False),
        sa.Column("workload", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("audience", sa.Text, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("recipients", sa.Text, nullable=False),  # a JSON list
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("headers", sa.Text, nullable=False),  # a JSON object
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("bisection", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("changed", sa.Float, nullable=False),
        sa.Column("by_whom", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("sender", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("first_attempt", sa.Float),
        sa.Column("not_before", sa.Float, nullable=False),
        sa.Column("sent", sa.Float),
        sa.Column("accepted", sa.Text, nullable=False),  # a JSON list
        sa.Column("refused", sa.Text, nullable=False),  # a JSON object: recipient -> why
        sa.UniqueConstraint("about", "workload", "kind", "audience"),
    )
    op.create_index("outbox_by_state", "outbox", ["state"])
    op.create_index("outbox_by_bisection", "outbox", ["bisection"])
