"""YAML, TOML and JSON as Python values: one strict reader for each, with the same limits and errors."""
