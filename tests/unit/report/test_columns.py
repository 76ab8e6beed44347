"""Aligned columns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bisector.report.columns import align

CELL = st.text(st.characters(codec="ascii", exclude_categories=["Cc", "Zs"]), max_size=8)


def test_text_to_the_left_and_numbers_to_the_right() -> None:
    assert align(("A", "B"), [("long", "1"), ("x", "22")]) == ["A     B", "long  1", "x     22"]
    assert align(("A", "B"), [("long", "1"), ("x", "22")], right=True) == ["A      B", "long   1", "x     22"]


@given(st.lists(st.tuples(CELL, CELL, CELL), max_size=5))
def test_the_last_of_several_columns_begins_at_one_place(rows: list[tuple[str, str, str]]) -> None:
    lines = align(("a", "b", "c"), rows)
    place = lines[0].index("c", 2)
    assert all(line[place:] == row[2] for line, row in zip(lines[1:], rows, strict=True))
