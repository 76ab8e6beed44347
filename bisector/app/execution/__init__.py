"""Bisections as processes execute them: with which adapters, watched by whom, in which queue."""
