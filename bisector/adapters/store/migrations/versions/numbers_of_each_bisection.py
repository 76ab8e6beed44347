"""Version 4: events are numbered within their bisection, and several processes share the testbeds.

Numbers that a database gives to all events do not follow the order of commits when several processes write:
a reader that asks for what is new might skip one. Old events keep their numbers; up to `dense_after` they
have gaps.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "4"
down_revision = "3"


def upgrade() -> None:
    """Number events anew from here on; add the tables of executors, leases, testbeds and reservations."""
    if op.get_bind().dialect.name == "postgresql":  # SQLite has it from `sqlite_file`
        op.execute(
            "CREATE FUNCTION seconds_now() RETURNS double precision LANGUAGE sql VOLATILE "
            "AS 'SELECT extract(epoch FROM clock_timestamp())::double precision'"
        )
    op.add_column("bisections", sa.Column("dense_after", sa.Integer, nullable=False, server_default="0"))
    op.execute(
        "UPDATE bisections SET dense_after = "
        "coalesce((SELECT max(sequence) FROM events WHERE bisection = bisections.id), 0)"
    )
    # Nothing ran while the file was converted: what says so was killed, and waits for 'resume'.
    op.execute("UPDATE bisections SET status = 'interrupted' WHERE status = 'running'")
    op.create_table(
        "events_4",
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("bisection", sa.Text, sa.ForeignKey("bisections.id"), nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("bisection", "sequence"),
    )
    op.execute(
        "INSERT INTO events_4 (sequence, bisection, kind, body, note) "
        "SELECT sequence, bisection, kind, body, note FROM events ORDER BY sequence"
    )
    op.drop_table("events")
    op.rename_table("events_4", "events")
    op.create_table(
        "executors",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("seen", sa.Float, nullable=False),
        sa.Column("fenced", sa.Integer, nullable=False),
    )
    op.create_table(
        "leases",
        sa.Column("resource", sa.Text, primary_key=True),
        sa.Column("executor", sa.Text),  # none: it is free
        sa.Column("epoch", sa.Integer, nullable=False),
    )
    op.create_table(
        "testbeds",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("changed_by", sa.Text, nullable=False),
        sa.Column("since", sa.Float, nullable=False),
    )
    op.create_table(
        "reservations",
        sa.Column("testbed", sa.Text, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("starts", sa.Float, nullable=False),
        sa.Column("ends", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("testbed", "who", "starts"),
    )
