"""Alerts in memory and in SQL databases."""
