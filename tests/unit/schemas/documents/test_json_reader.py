"""JSON: keys twice, numbers and depth beyond the limits, broken texts, each with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.errors import RequestError
from bisector.schemas.documents.json_reader import (
    json_lines,
    parse_documents,
    parse_json,
    read_json,
    read_own_json,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1,\n"a": 2}', "f:2: the key 'a' is there already in line 1"),
        ('{"x": [1, {"b": 1,\n\n "b": {"c": 1}}]}', "f:3: the key 'x.1.b' is there already in line 1"),
        ('{"a:": 1, "a": [{}], "a:": 2}', "f:1: the key 'a:' is there already"),
        ("[" * 100_000, "more than 100 lists"),
        ("[" * 101 + "]" * 101, "more than 100 lists"),
        ('{"a":' * 101 + "1" + "}" * 101, "more than 100 lists"),
        ("[1,\n" + "1" * 5000 + "]", "f:2: a number of thousands of digits"),
        ('{"a": 1,\n "b": NaN}', "f:2: key 'b': nan is no finite number"),
        ("[1,\n1e309]", "f:2: key '1': inf is no finite number"),
        ("[-1e308]", "f:1: key '0': -1e+308 is too large"),
        ('["\\ud800"]', "half a character"),
        ('{"a" 1}', "f:1: not valid JSON: a ':' was expected"),
        ("{a: 1}", 'f:1: not valid JSON: a key in "double quotes"'),
        ("[1 2]", "f:1: not valid JSON: a ',' or the closing bracket"),
        ("[1,]", "f:1: not valid JSON: "),
        ('["a\nb"]', "f:1: not valid JSON: a text goes on"),
        ('["\\q"]', "f:1: not valid JSON: a backslash"),
        ('["\\u12"]', "f:1: not valid JSON: a backslash"),
        ('"abc', "f:1: not valid JSON: it ends in the middle of a text"),
        ("[1,\n2", "f:2: not valid JSON: it ends in the middle"),
        ("", "not valid JSON: there is nothing in it"),
        ("1 2", "something follows the end"),
        ("'a'", "f:1: not valid JSON: a value was expected"),
    ],
)
def test_what_is_wrong_in_a_text(text: str, words: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_json(text, "f")
    assert words in caught.value.message
    assert caught.value.cure
    for theirs in ("Expecting", "Extra data", "delimiter", "Exceeds", "char "):
        assert theirs not in caught.value.message + caught.value.details, "the library's own words"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(-1e9, 1e9)
    | st.text('ab"\\{}[]:,ä\n'),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text('ab"\\:', max_size=3), inner, max_size=4)
    ),
)


@given(VALUES)
def test_a_valid_document_is_what_json_says(value: object) -> None:
    assert parse_json(json.dumps(value), "f") == value
    assert parse_documents(json.dumps([value], indent=1) * 2, "f") == [[value], [value]]


@given(st.dictionaries(st.text('ab"\\{}[]:,', max_size=3), VALUES, min_size=1, max_size=4))
def test_the_line_of_each_key_is_found(value: dict[str, object]) -> None:
    text = json.dumps(value, indent=1)
    lines = dict(json_lines(text))
    for key in value:
        assert text.splitlines()[lines[(key,)] - 1].lstrip().startswith(json.dumps(key))


def test_own_files_that_are_damaged_count_as_absent(tmp_path: Path) -> None:
    note = tmp_path / "note.json"
    assert read_own_json(note) is None
    for text in ("", "[]", "{", '{"b": 1}', '{"a": 1, "a": 2}', "[" * 9999):
        note.write_text(text)
        assert read_own_json(note, ("a",)) is None
    note.write_text('{"a": 1}')
    assert read_own_json(note, ("a",)) == read_json(note) == {"a": 1}
