"""Texts from elsewhere."""

from __future__ import annotations

from bisector.model.bounded_text import cut


def test_texts_from_elsewhere_are_cut_and_can_be_kept() -> None:
    assert cut("a" * 10, 10) == "a" * 10
    assert cut("a" * 11, 10) == "a" * 6 + " ..."
    assert cut("a\0\ud800", 10) == "a\ufffd?"
