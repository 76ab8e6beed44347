"""Nightly series in memory and in SQL databases."""
