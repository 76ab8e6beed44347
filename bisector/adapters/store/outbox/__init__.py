"""The outbox: in memory, and in the database of the bisections."""
