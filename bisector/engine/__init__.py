"""Executes bisections: decisions, builds, visits to testbeds; goes on after any kill."""
