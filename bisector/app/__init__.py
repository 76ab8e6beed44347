"""Use cases, and the wiring that gives them real adapters."""
