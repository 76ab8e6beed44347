"""Limits that the user has not set: nothing is asked for without end, or denied beyond what was seen."""
