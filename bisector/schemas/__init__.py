"""pydantic models of everything that users write: request, workload, recipe, lab, settings."""
