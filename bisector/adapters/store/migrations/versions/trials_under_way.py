"""Version 9: several executors work on one bisection.

`trials` has what is under way in whichever process; `numbered` is the highest number of a boot; a lease is
wanted by who asked for it last, so that its holder leaves it and does not take it again at once.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "9"
down_revision = "8"


def upgrade() -> None:
    """Add the table and the columns; nothing is under way while a database is converted."""
    op.create_table(
        "trials",
        sa.Column("bisection", sa.Text, sa.ForeignKey("bisections.id"), nullable=False),
        sa.Column("testbed", sa.Text, nullable=False),
        sa.Column("executor", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("bisection", "testbed"),
    )
    op.add_column("bisections", sa.Column("numbered", sa.Integer, nullable=False, server_default="0"))
    op.add_column("leases", sa.Column("wanted_by", sa.Text))
    op.add_column("leases", sa.Column("wanted_at", sa.Float))
