"""Sections of a bisection's report, each with the same words for text, JSON, pages and mails."""
