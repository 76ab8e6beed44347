"""Shared by all parsers: the text of a file, unambiguous numbers, errors in one form."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from typing import Any

from bisector.adapters.system.archive import ArchiveError, read_compressed
from bisector.errors import RequestError
from bisector.schemas.documents.document import IN_RANGE, LARGEST_NUMBER, shown_path
from bisector.schemas.documents.json_reader import parse_json

_MAX_BYTES = 1 << 30
"""Of one file, decompressed: a million samples have 20 MB, perf script's text of an hour some hundred."""

_MAX_WEIGHT = 1e18
"""Nanoseconds of thirty years."""

NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_SHOWN_CHARACTERS = 60
"""Characters of a wrong text that a message repeats."""

_PLAIN = re.compile(NUMBER)
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_COMMA = re.compile(r"[-+]?[\d.'’  ]*\d,\d+")


_HELP = "'perfbisect compare --help' and 'perfbisect profile --help' say what can be read"


def malformed(where: str, what: str, right: str = "", details: str = "") -> RequestError:
    """Return the error: where it stands, what is wrong, what would be right."""
    return RequestError(f"{where}: {what}", details=details, cure=right or _HELP)


def cut(value: object) -> str:
    """Return a value as text, cut where it is long."""
    text = str(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def shown(text: str) -> str:
    """Return a text as messages quote it."""
    return f"'{cut(text)}'"


def parse_number(text: str, where: str, *, grouped: bool = False, right: str = "") -> float:
    """Return a number that is finite, and no larger than JSON's may be.

    grouped: '1,500,839' is one (perf writes such); without it every comma is refused, because nobody can
    tell 5,328 in thousands from 5.328 in a German locale; right: what would be, for the message of text
    that is no number at all. Raises RequestError.
    """
    if _PLAIN.fullmatch(text):
        value = float(text)
    elif grouped and _GROUPED.fullmatch(text):
        value = float(text.replace(",", ""))
    elif _COMMA.fullmatch(text):
        raise malformed(
            where,
            f"{shown(text)} has a comma, which is a decimal point in some locales and a separator in others",
            "measure with LC_ALL=C, or write the number as 1234.5",
        )
    else:
        try:
            value = float(text)  # 'nan', 'inf': numbers in form only
        except ValueError as error:
            raise malformed(where, f"{shown(text)} is not a number", right) from error
    if not math.isfinite(value):
        raise malformed(where, f"{shown(text)} is no finite number", "take out runs that failed")
    if abs(value) > LARGEST_NUMBER:
        raise malformed(where, f"{shown(text)} is too large", IN_RANGE)
    return value


def parse_weight(text: str, where: str) -> float:
    """Return a count or a share of a profile: not negative, and so small that sums of them are finite.

    Raises RequestError.
    """
    value = parse_number(text, where)
    if not 0 <= value <= _MAX_WEIGHT:
        raise malformed(where, f"{shown(text)} is not a count of samples or calls")
    return value


def json_number(value: object, where: str, right: str = "") -> float:
    """Return a JSON value that is a finite number. Raises RequestError."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise malformed(where, f"a number was expected, not {cut(value)}", right)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise malformed(where, "a number is not finite", "take out runs that failed")
    return number


def json_object(value: object, where: str) -> dict[str, Any]:
    """Return a JSON value that is an object. Raises RequestError."""
    if not isinstance(value, dict):
        raise malformed(where, f"an object was expected, not {cut(value)}")
    return value


def json_list(value: object, where: str) -> list[Any]:
    """Return a JSON value that is a list. Raises RequestError."""
    if not isinstance(value, list):
        raise malformed(where, f"a list was expected, not {cut(value)}")
    return value


def json_count(value: object, where: str) -> int:
    """Return a JSON value that is a whole number from 0 on. Raises RequestError."""
    number = json_number(value, where)
    if number < 0 or number != int(number) or number >= 1 << 63:
        raise malformed(where, f"a whole number from 0 on was expected, not {cut(value)}")
    return int(number)


def first_bytes(path: Path, count: int) -> bytes:
    """Return the beginning of a file. Raises RequestError."""
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError as error:
        raise malformed(str(path), "cannot be read", details=str(error)) from error


def read_text(path: Path) -> str:
    """Return a file's text, decompressed if its name ends in .gz or .xz. Raises RequestError."""
    try:
        return read_compressed(path, _MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise malformed(
            str(path), "this is not text in UTF-8", "text or JSON in UTF-8, or a kernel's vmlinux"
        ) from error
    except ArchiveError as error:
        raise malformed(str(path), "cannot be read", details=error.details or error.message) from error


def read_standard_input() -> str:
    """Return the text on standard input. Raises RequestError."""
    if sys.stdin is None:
        raise malformed("stdin", "standard input is closed", "give a file, or write to perfbisect in a pipe")
    content = sys.stdin.buffer.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise malformed("stdin", f"more than {_MAX_BYTES >> 30} GiB", "give a part of it")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise malformed("stdin", "this is not text in UTF-8", "text or JSON in UTF-8") from error


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file. Raises RequestError."""
    value = parse_json(read_text(path), shown_path(path))
    if not isinstance(value, dict):
        raise malformed(
            str(path), "an object of statistics was expected", "delete this run's folder, or repeat it"
        )
    return value


def natural_order(text: str) -> tuple[int, str]:
    """Return a key that sorts names by the first number in them: iter-2 before iter-10."""
    match = re.search(r"\d+", text)
    return (int(match[0][:18]) if match else 0, text)
