"""How the tables came to be: Alembic's environment and its revisions."""
