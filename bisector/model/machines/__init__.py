"""Machines of the lab: what checks found, and their firmware."""
