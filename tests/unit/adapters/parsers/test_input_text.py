"""Numbers that can mean only one thing, natural order, and the text of files."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import pytest

from bisector.adapters.parsers import input_text
from bisector.adapters.parsers.input_text import (
    natural_order,
    parse_number,
    parse_weight,
    read_json_object,
    read_text,
)
from bisector.errors import RequestError


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1.0), ("-1.5", -1.5), (".5", 0.5), ("3e1", 30.0), ("+2E-1", 0.2), ("7.", 7.0), ("1e100", 1e100)],
)
def test_numbers(text: str, value: float) -> None:
    assert parse_number(text, "a:1") == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,5", "has a comma"),
        ("5,328", "has a comma"),
        ("nan", "no finite number"),
        ("inf", "no finite number"),
        ("1e999", "no finite number"),
        ("1.5e100", "'1.5e100' is too large"),
        ("-1e101", "'-1e101' is too large"),
        ("", "is not a number"),
        ("12s", "is not a number"),
    ],
)
def test_what_is_no_number_or_could_mean_two(text: str, words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        parse_number(text, "a:1")
    assert caught.value.message.startswith("a:1: ")


def test_groups_of_thousands_only_where_a_program_writes_such() -> None:
    assert parse_number("1,500,839", "a:1", grouped=True) == 1500839
    with pytest.raises(RequestError):
        parse_number("1,50,839", "a:1", grouped=True)


def test_natural_order() -> None:
    names = ["iter-10", "iter-2", "x", "iter-1"]
    assert sorted(names, key=natural_order) == ["x", "iter-1", "iter-2", "iter-10"]
    assert natural_order("iter-" + 5000 * "1") > natural_order("iter-10"), "more digits than int() takes"


def test_a_weight_is_small_enough_to_be_added_up() -> None:
    assert parse_weight("1e18", "a:1") == 1e18
    for wrong in ("1e19", "-1"):
        with pytest.raises(RequestError, match=f"a:1: '{wrong}' is not a count of samples or calls"):
            parse_weight(wrong, "a:1")


def test_standard_input_has_an_end_and_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_text, "_MAX_BYTES", 4)
    for given, words in ((b"12345", "more than"), (b"\xff", "not text in UTF-8")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        with pytest.raises(RequestError, match=f"stdin: .*{words}"):
            input_text.read_standard_input()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1234")))
    assert input_text.read_standard_input() == "1234"
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(RequestError, match="standard input is closed"):
        input_text.read_standard_input()


def test_the_byte_order_mark_of_editors_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n2\n", encoding="utf-8-sig")
    assert read_text(tmp_path / "a") == "1\n2\n"


def test_text_is_decompressed_and_must_be_text(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress("é".encode()))
    assert read_text(tmp_path / "a.gz") == "é"
    (tmp_path / "b").write_bytes(b"\xff\xfe")
    with pytest.raises(RequestError, match="this is not text"):
        read_text(tmp_path / "b")
    with pytest.raises(RequestError, match="cannot be read"):
        read_text(tmp_path / "none")


@pytest.mark.parametrize(("text", "words"), [("{", "not valid JSON"), ("[1]", "an object")])
def test_what_is_no_json_object(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(RequestError, match=words):
        read_json_object(tmp_path / "a.json")
    (tmp_path / "a.json").write_text('{"a": 1}')
    assert read_json_object(tmp_path / "a.json") == {"a": 1}
