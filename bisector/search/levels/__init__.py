"""Levels along history: how a loss divides into steps, and which of them to look at next."""
