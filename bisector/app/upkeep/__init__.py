"""Care of what is kept: what may be removed, and the database."""
