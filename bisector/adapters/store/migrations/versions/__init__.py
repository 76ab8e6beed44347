"""Alembic's revisions: each makes the tables of one version from those of the version before it."""
