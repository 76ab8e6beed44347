"""The commands that put results side by side."""
