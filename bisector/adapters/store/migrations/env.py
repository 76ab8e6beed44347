"""Alembic executes this file: the revisions are applied on the connection that `migration` hands over."""

from __future__ import annotations

from alembic import context

if __name__ == "env_py":  # Alembic's name for it; a plain import does nothing
    given = context.config.attributes
    context.configure(connection=given["connection"], progress=given["progress"])
    with context.begin_transaction():
        context.run_migrations()
