"""Version 13: which host has a testbed that is another machine on each; when a lease was used last."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "13"
down_revision = "12"


def upgrade() -> None:
    """Add the table and the column; free leases of before count as old."""
    op.create_table(
        "testbed_hosts",
        sa.Column("testbed", sa.Text, primary_key=True),
        sa.Column("host", sa.Text, nullable=False),
    )
    op.add_column("leases", sa.Column("used", sa.Float, nullable=False, server_default="0"))
