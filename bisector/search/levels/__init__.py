"""Levels along history: how a loss divides into steps, which to look at next, and which are doubtful."""
