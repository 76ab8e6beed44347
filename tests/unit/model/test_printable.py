"""What no terminal may get, and that nothing else changes."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.model.printable import cut, printable, printable_header, printable_json, printable_line

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Zeitgeber für Ü-Wagen, 中文, 🙂, é", "Zeitgeber für Ü-Wagen, 中文, 🙂, é"),
        ("a\tb\nc\r\nd", "a\tb\nc\nd"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x1b]52;c;b3duZWQ=\x1b\\", "\\x1b]52;c;b3duZWQ=\\x1b\\"),
        ("\x9b31mred \x9d0;t\x9c", "\\x9b31mred \\x9d0;t\\x9c"),
        ("50%\r100%\b\x7f\0", "50%\\x0d100%\\x08\\x7f\\x00"),
        ("\u202egnp.exe\u2066\u200f\u061c", "\\u202egnp.exe\\u2066\\u200f\\u061c"),
        ("a\u200bb\ufeff\u2028", "a\\u200bb\\ufeff\\u2028"),
        ("\udcff \U000e0041", "\\udcff \\U000e0041"),
    ],
)
def test_each_kind_is_shown(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_json_has_no_number_that_json_does_not_have() -> None:
    """`calibrate --kexec` has an interval without limits where each side has one boot."""
    found = printable_json({"limits": (float("-inf"), 0.5, float("inf")), "mean": [float("nan")]})
    assert json.loads(found, parse_constant=pytest.fail) == {"limits": [None, 0.5, None], "mean": [None]}


def test_a_line_stays_one() -> None:
    assert printable_line("subject\ngit bisect good\r\nx") == "subject\\ngit bisect good\\nx"


def test_a_header_has_no_encoded_word() -> None:
    shown = printable_header("=?utf-8?q?a=0AB:_c?= =?\n")
    assert shown == "=\\x3futf-8?q?a=0AB:_c?= =\\x3f\\n"


@given(ANY_TEXT)
def test_no_control_or_format_character_is_left(text: str) -> None:
    shown = printable(text)
    shown.encode()  # it can be written as UTF-8
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t"]
    assert not [c for c in shown if unicodedata.bidirectional(c) in _ORDERING]
    assert printable(shown) == shown


_ORDERING = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


@given(st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs", "Cn", "Mn", "Lo", "Zl", "Zp"))))
def test_what_can_be_seen_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


@given(st.dictionaries(ANY_TEXT, ANY_TEXT | st.lists(ANY_TEXT)))
def test_json_says_the_same(value: dict[str, object]) -> None:
    text = printable_json(value)
    assert json.loads(text) == json.loads(json.dumps(value))
    assert printable(text) == text


def test_json_is_written_for_readers_too() -> None:
    assert printable_json({"a": [1]}) == '{\n  "a": [\n    1\n  ]\n}'


def test_texts_from_elsewhere_are_cut_and_can_be_kept() -> None:
    assert cut("a" * 10, 10) == "a" * 10
    assert cut("a" * 11, 10) == "a" * 6 + " ..."
    assert cut("a\0\ud800", 10) == "a\ufffd?"
