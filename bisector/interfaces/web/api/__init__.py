"""REST: what the commands print with --json, and what they change, below /api/v1."""
