"""Paragraphs of mails, as wide as mailing lists expect them."""

from __future__ import annotations

from bisector.report import phrases

MAIL_WIDTH = 72
"""Characters of a line: quoted a few times, it still fits into 80 columns."""


def paragraph(text: str) -> list[str]:
    """Return the lines of a paragraph."""
    return phrases.wrap(text, "", width=MAIL_WIDTH)
