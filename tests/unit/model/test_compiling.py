"""A sentence of progress with a share."""

from __future__ import annotations

from bisector.model.compiling import Compiling


def test_it_is_its_text_and_says_how_much_is_done() -> None:
    said = Compiling("compiling: 3 of about 4 files", 0.75)
    assert said == "compiling: 3 of about 4 files"
    assert said.share == 0.75
