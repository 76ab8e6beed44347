"""HTTP: the one place that imports its client."""
