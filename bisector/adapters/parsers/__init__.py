"""Readers of what other programs printed. Every text is hostile."""
