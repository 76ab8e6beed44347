"""TOML: what tomllib refuses, in our words; both lines of what is there twice."""

from __future__ import annotations

import inspect
import re
import tomllib._parser  # type: ignore[import-not-found]

import pytest

from bisector.errors import RequestError
from bisector.schemas.documents import toml_reader
from bisector.schemas.documents.toml_reader import parse_toml, toml_lines


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = 1\nb = 2\na = 3", "f:3: the key 'a' is there already in line 1"),
        ("[a]\n[b]\n[a]", "f:3: the key 'a' is there already in line 1"),
        ("a.b = 1\na.b = 2\n", "f:2: the key 'a.b' is there already in line 1"),
        ("a = {b = 1, b = 2}", "f:1: the key 'b' is there already in line 1"),
        ("a = 1\n[a]", "f:2: the key 'a' is there already in line 1"),
        ("a = 1\na.b = 2", "f:2: the key 'a.b' is there already in line 1"),
        ("[t]\nx = 1\n[t.x.y]", "f:3: the key 't.x.y' is there already in line 2"),
        ("[[a]]\n[a]", "f:2: the key 'a' is there already in line 1"),
        ("[a]\n[[a]]", "f:2: the key 'a' is there already in line 1"),
        ("a.b.c = 1\n[a.b]\nc = 2", "f:2: the key 'a.b' is there already in line 1"),
        ('[[r]]\nx = 1\n[[r]]\n"x" = 1\nx = 2', "f:5: the key 'r.x' is there already in line 4"),
        ("[x]\na = '''\na = 1\n'''\na = 2", "f:5: the key 'x.a' is there already in line 2"),
        ("a = " + "[" * 3000, "more than 100 lists"),
        ("x = 1\na = " + "[" * 101 + "]" * 101, "f:2: more than 100 lists"),
        ("a" + ".b" * 3000 + " = 1", "more than 100 lists"),
        ("x = 1\na = " + "1" * 5000, "f:2: a number of thousands of digits"),
        ("x = 1\na = 1e309", "f:2: key 'a': inf is no finite number"),
        ("x = 1\n[[t]]\na = [1, nan]", "f:3: key 't.0.a.1': nan is no finite number"),
        ('a = "\\u0000"', "f:1: key 'a': text with a NUL"),
        ("a = 1 b", "f:1: not valid TOML: something follows"),
        ("a", "f:1: not valid TOML: behind a key there must be '='"),
        ("a = \n", "f:1: not valid TOML: a value was expected"),
        ("\n\na = 'x", "f:3: not valid TOML: a text has no closing quotes"),
        ('a = "\\q"', "f:1: not valid TOML: a backslash"),
    ],
)
def test_what_is_wrong_in_a_text(text: str, words: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_toml(text, "f")
    assert words in caught.value.message
    assert caught.value.cure


def test_every_message_of_tomllib_has_our_words() -> None:
    messages = re.findall(
        r"suffixed_err\(\s*src,\s*\w+,\s*f?(['\"])(.+?)\1\s*\)", inspect.getsource(tomllib._parser)
    )
    assert len(messages) >= 20
    for _, source in messages:
        text = source.replace("\\\\", "\\")
        known = [words for words in toml_reader._WORDS if text.startswith(words)]
        dynamic = text.startswith("Expected {expect") or "{" in text
        assert known or dynamic or toml_reader._TWICE.match(text), f"no own words for '{text}'"


def test_the_lines_of_tables_rows_and_keys() -> None:
    text = "a = 1\n[b]\nc.d = 2\n[[e]]\nf = 3\n[[e]]\n[e.g]\nh = 4\n"
    assert dict(toml_lines(text)) == {
        ("a",): 1,
        ("b",): 2,
        ("b", "c", "d"): 3,
        ("e", "0"): 4,
        ("e", "0", "f"): 5,
        ("e", "1"): 6,
        ("e", "1", "g"): 7,
        ("e", "1", "g", "h"): 8,
    }
