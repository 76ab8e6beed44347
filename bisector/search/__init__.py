"""The search: what is believed about the culprits, and what is measured next. Pure."""
