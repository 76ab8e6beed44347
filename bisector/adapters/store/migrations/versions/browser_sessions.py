"""Version 10: sessions of browsers, each begun with a token and valid no longer than it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "10"
down_revision = "9"


def upgrade() -> None:
    """Add the table. hash: of the session's secret; token: the hash of the token's."""
    op.create_table(
        "sessions",
        sa.Column("hash", sa.Text, primary_key=True),
        sa.Column("token", sa.Text, sa.ForeignKey("tokens.hash"), nullable=False),
        sa.Column("expires", sa.Float, nullable=False),
    )
