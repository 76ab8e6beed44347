"""Paragraphs of mails."""

from __future__ import annotations

from bisector.report.mail.paragraphs import MAIL_WIDTH, paragraph


def test_a_line_that_is_quoted_four_times_fits_into_80_columns() -> None:
    lines = paragraph("word " * 40)
    assert all(len("> " * 4 + line) <= 80 for line in lines)
    assert max(map(len, lines)) > MAIL_WIDTH - len("word ")
    assert not lines[0].startswith(" ")
