"""Version 8: tokens of the web server's users, and what was changed with them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "8"
down_revision = "7"


def upgrade() -> None:
    """Add the tables; a name is taken until its token is revoked."""
    op.create_table(
        "tokens",
        sa.Column("hash", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("expires", sa.Float),
        sa.Column("last_used", sa.Float),
        sa.Column("revoked", sa.Float),
    )
    op.execute("CREATE UNIQUE INDEX tokens_by_name ON tokens (name) WHERE revoked IS NULL")
    op.create_table(
        "changes",
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("details", sa.Text, nullable=False),
    )
    op.create_index("changes_by_time", "changes", ["at"])
