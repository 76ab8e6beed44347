"""TOML: settings, and the tables of `kernels/`. tomllib reads it; the lines of keys are looked for here."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from bisector.errors import RequestError
from bisector.schemas.documents.document import (
    MAX_DEPTH,
    Key,
    check_values,
    duplicate_key,
    line_of,
    nearest_line,
    place_of_long_number,
    syntax_error,
    too_deep,
    too_many_digits,
)

_PART = r"(?:[A-Za-z0-9_-]+|\"[^\"\n]*\"|'[^'\n]*')"
_NAME = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"(?P<open>\[\[?)\s*(?P<name>{_NAME})\s*\]\]?\s*(#.*)?")
_KEY = re.compile(rf"(?P<name>{_NAME})\s*=")

_ENDLESS_NAME = re.compile(
    r"(?m:^|[\[{,])[ \t]*+"
    rf"(?:(?:[A-Za-z0-9_-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{MAX_DEPTH}}}"
)
"""A name of more parts than tables may be in each other. tomllib reads one in a time that grows with the
square of its parts: minutes for 200 KB."""

_TWICE = re.compile("Cannot (overwrite|declare|mutate|redefine)|Duplicate inline")
"""How tomllib's messages begin for what is defined twice."""

_WORDS = {
    "Invalid statement": "a key, a [table] or a comment was expected",
    "Expected newline": "something follows the value on its line",
    "Expected '='": "behind a key there must be '=' and a value",
    "Invalid value": "a value was expected: text in quotes, a number, true, false or a list",
    "Unclosed array": "a list has no ']'",
    "Unclosed inline table": "a table has no '}'",
    "Unterminated string": "a text has no closing quotes",
    "Expected \"'": "a text has no closing quotes",
    "Expected '\"": "a text has no closing quotes",
    "Illegal character": "a text goes on in the next line, or has a control character",
    "Found invalid character": "a character that cannot be there",
    "Unescaped '\\'": "a backslash in a text: write two, or put the text in 'single quotes'",
    "Invalid hex value": "an escape of a character needs hexadecimal digits",
    "Escaped character": "an escape that names no character",
    "Invalid initial character": "a key has letters, digits, '_' and '-', or stands in quotes",
    "Invalid date": "there is no such date",
    "Expected ']": "a [table] has no closing bracket",
}
"""How tomllib's messages begin, in our words."""


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Return the values of a text. where: names it in errors (RequestError)."""
    endless = _ENDLESS_NAME.search(text)
    if endless is not None:
        raise too_deep(f"{where}:{line_of(text, endless.end())}")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        line = int(place[1]) if place else len(text.splitlines())
        if _TWICE.match(str(error)):
            raise _defined_twice(text, where, line, str(error)) from error
        words = next(
            (ours for theirs, ours in _WORDS.items() if str(error).startswith(theirs)), "not understood"
        )
        raise syntax_error("TOML", where, text, line, words) from error
    except RecursionError as error:
        raise too_deep(where) from error
    except ValueError as error:  # of int(): "Exceeds the limit (4300 digits)"
        raise too_many_digits(place_of_long_number(text, where)) from error
    check_values(data, lambda key: f"{where}:{nearest_line(dict(toml_lines(text)), key)}")
    return data


def toml_lines(text: str) -> Iterator[tuple[Key, int]]:
    """Yield path and line of each table and of the keys in it; keys of inline tables are not looked for."""
    table: Key = ()
    rows: dict[Key, int] = {}
    within = ""  # the quotes of a text of several lines
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if within:
            within = "" if within in line else within
            continue
        header, key = _HEADER.fullmatch(line), _KEY.match(line)
        if header is not None:
            table = _parts(header["name"])
            if header["open"] == "[[":
                rows[table] = rows.get(table, -1) + 1
            for length in range(1, len(table) + 1):  # a table below the latest row of another
                if table[:length] in rows:
                    table = (*table[:length], str(rows[table[:length]]), *table[length:])
            yield table, number
        elif key is not None:
            yield (*table, *_parts(key["name"])), number
        within = next((quotes for quotes in ('"""', "'''") if line.count(quotes) == 1), "")


def _parts(name: str) -> Key:
    return tuple(part.strip("\"'") for part in re.findall(_PART, name))


def _defined_twice(text: str, where: str, line: int, message: str) -> RequestError:
    """Return the error with the lines of both definitions. line: where tomllib noticed the second one."""
    inline = re.match("Duplicate inline table key '(.*)' ", message)
    if inline is not None:
        return duplicate_key(where, (inline[1],), line, line)
    known = [(key, number) for key, number in toml_lines(text) if number <= line]
    key, second = known.pop() if known else (("?",), line)
    same = [number for other, number in known if other[: len(key)] == key]
    # 'a.b' after 'a = 1': the longest name that this one begins with is the value.
    shorter = [(other, number) for other, number in known if key[: len(other)] == other]
    first = same[0] if same else max(shorter, key=lambda one: len(one[0]), default=(key, second))[1]
    return duplicate_key(where, tuple(part for part in key if not part.isdigit()), first, second)
