"""Watching bisections that others execute."""
