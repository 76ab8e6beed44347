"""Persistent data: bisections with their records, calibrations."""
