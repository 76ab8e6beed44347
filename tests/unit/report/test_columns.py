"""Aligned columns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bisector.report.columns import align, fit

CELL = st.text(st.characters(codec="ascii", exclude_categories=["Cc", "Zs"]), max_size=8)


def test_text_to_the_left_and_numbers_to_the_right() -> None:
    assert align(("A", "B"), [("long", "1"), ("x", "22")]) == ["A     B", "long  1", "x     22"]
    assert align(("A", "B"), [("long", "1"), ("x", "22")], right=True) == ["A      B", "long   1", "x     22"]


@given(st.lists(st.tuples(CELL, CELL, CELL), max_size=5))
def test_the_last_of_several_columns_begins_at_one_place(rows: list[tuple[str, str, str]]) -> None:
    lines = align(("a", "b", "c"), rows)
    place = lines[0].index("c", 2)
    assert all(line[place:] == row[2] for line, row in zip(lines[1:], rows, strict=True))


def test_escapes_have_the_room_that_they_take() -> None:
    """A name with a control character moved the columns behind it, by three for each."""
    rows = [("a\x1b\n\tb", "1"), ("c", "2")]
    lines = [r"a\x1b\n\tb  1", "c           2"]
    assert align(("N", "V"), rows)[1:] == fit(("N", "V"), rows, None)[1:] == lines
    assert align(("a\x07", "V"), []) == fit(("a\x07", "V"), [], 80) == [r"a\x07  V"]


HEADER = ("NAME", "WHEN", "DESCRIPTION")
ROWS = [
    ("first", "2026-11-22 10:00", "a sentence of several words that does not fit into a narrow terminal"),
    ("second-of-the-two", "2026-11-22 10:01", "short"),
]


def fitted(width: int | None) -> list[str]:
    return fit(HEADER, ROWS, width, wrapped=["DESCRIPTION"], dropped=["WHEN"])


def test_without_a_limit_every_row_is_a_line() -> None:
    assert fitted(None) == align(HEADER, ROWS)
    assert fitted(200) == align(HEADER, ROWS)


def test_sentences_wrap_before_a_column_is_left_out() -> None:
    lines = fitted(80)
    assert lines[0] == "NAME               WHEN              DESCRIPTION"
    assert lines[1:3] == [
        "first              2026-11-22 10:00  a sentence of several words that does not",
        "                                     fit into a narrow terminal",
    ]


def test_the_least_important_column_is_left_out_before_sentences_get_too_narrow() -> None:
    lines = fitted(55)
    assert lines[0] == "NAME               DESCRIPTION"
    assert all(len(line) <= 55 for line in lines)
    assert "narrow terminal" in " ".join(lines)


WORD = st.text("abc-", min_size=1, max_size=9)
SENTENCE = st.lists(WORD, max_size=12).map(" ".join)


@given(st.lists(st.tuples(WORD, WORD, SENTENCE), max_size=4), st.integers(1, 120))
def test_no_word_is_broken_and_none_of_the_important_ones_is_lost(
    rows: list[tuple[str, str, str]], width: int
) -> None:
    lines = fit(("A", "B", "C"), rows, width, wrapped=["C"], dropped=["B"])
    printed = " ".join(lines).split()
    for name, _, sentence in rows:
        assert name in printed
        assert all(word in printed for word in sentence.split())
    longest = max((len(word) for row in rows for word in row[2].split()), default=1)
    if width >= 9 + 2 + longest:  # the widest name, the gap, the widest word
        assert all(len(line) <= width for line in lines)
