"""JSON: what users give, what programs print, and what perfbisect itself keeps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bisector.errors import InfrastructureError, RequestError
from bisector.schemas.documents.document import (
    MAX_JSON_BYTES,
    Key,
    check_values,
    duplicate_key,
    place_of_long_number,
    read_document,
    shown_path,
    syntax_error,
    too_deep,
    too_many_digits,
)

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},:]|[^][{},:"\s]+', re.DOTALL)

_WORDS = {
    "Expecting value": "a value was expected",
    "Expecting property name": 'a key in "double quotes" was expected',
    "Expecting ':'": "a ':' was expected behind the key",
    "Expecting ','": "a ',' or the closing bracket was expected",
    "Illegal trailing comma": "there is a ',' before the closing bracket",
    "Unterminated string": "it ends in the middle of a text",
    "Invalid control character": "a text goes on in the next line, or has a control character",
    "Invalid \\": "a backslash that begins no escape",
    "Extra data": "something follows the end of the document",
}
"""How the messages of Python's json begin, in our words."""


class _DuplicateError(Exception):
    """A key is twice in an object; which one and where is looked for afterwards."""


def read_json(path: Path, max_bytes: int = MAX_JSON_BYTES, name: str = "") -> Any:  # noqa: ANN401 - JSON values
    """Return the document in a file. Raises RequestError naming file and line. name: of it, else its path."""
    return parse_json(read_document(path, max_bytes, name), name or shown_path(path))


def parse_json(text: str | bytes, where: str) -> Any:  # noqa: ANN401 - JSON values
    """Return the one document of a text. where: names the text in errors (RequestError)."""
    documents = parse_documents(text, where)
    if len(documents) != 1:
        what = "there is nothing in it" if not documents else _WORDS["Extra data"]
        raise syntax_error("JSON", where, "", 1, what)
    return documents[0]


def parse_documents(text: str | bytes, where: str) -> list[Any]:
    """Return the documents of a text, one after the other. Raises RequestError."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    decoder = json.JSONDecoder(object_pairs_hook=_unique)
    found: list[Any] = []
    at = 0
    try:
        while (at := _content(text, at)) < len(text):
            value, at = decoder.raw_decode(text, at)
            found.append(value)
    except json.JSONDecodeError as error:
        raise syntax_error("JSON", where, text, error.lineno, _own_words(error, text)) from error
    except _DuplicateError as error:
        raise _duplicate(text, where) from error
    except RecursionError as error:
        raise too_deep(where) from error
    except ValueError as error:  # of int(): "Exceeds the limit (4300 digits)"
        raise too_many_digits(place_of_long_number(text, where)) from error
    lines: dict[Key, int] = {}

    def place(key: Key) -> str:
        lines.update(json_lines(text))
        return f"{where}:{lines.get(key, 1)}"

    for document in found:
        check_values(document, place if len(found) == 1 else lambda key: where)
    return found


def check_unique_keys(text: str, where: str) -> None:
    """Raise RequestError for a key that is in an object twice. text: valid JSON."""
    try:
        json.loads(text, object_pairs_hook=_unique)
    except _DuplicateError as error:
        raise _duplicate(text, where) from error


def json_lines(text: str) -> Iterator[tuple[Key, int]]:
    """Yield path and line of every key and element of a document; a key that is there twice comes twice."""
    stack: list[str | int] = []  # the current key of an object, the current position in a list
    key_follows, line, seen = False, 1, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", seen, token.start())
        seen = token.start()
        word = token[0]
        if word in "]}":
            del stack[-1:]
            key_follows = False
        elif word == ",":
            position = stack[-1] if stack else ""
            key_follows = isinstance(position, str)
            if isinstance(position, int):
                stack[-1] = position + 1
        elif key_follows and word.startswith('"'):
            stack[-1], key_follows = json.loads(word, strict=False), False
            yield tuple(map(str, stack)), line
        elif word != ":":
            if stack and isinstance(stack[-1], int):
                yield tuple(map(str, stack)), line
            if word in "[{":
                stack.append(0 if word == "[" else "")
                key_follows = word == "{"


def read_own_json(path: Path, keys: Sequence[str] = ()) -> dict[str, Any] | None:
    """Return the object in a file that perfbisect keeps for itself, to be made anew if it is lost.

    None where it is absent, damaged, or lacks one of `keys`.
    """
    try:
        found = read_json(path)
    except RequestError:
        return None
    return found if isinstance(found, dict) and all(key in found for key in keys) else None


def read_state_json(path: Path) -> dict[str, Any]:
    """Return the object in a file of a bisection's state. Raises InfrastructureError if it is damaged."""
    found = read_own_json(path)
    if found is None:
        raise InfrastructureError(
            f"{shown_path(path)} is damaged", cure="remove this bisection's folder, and start it anew"
        )
    return found


def _content(text: str, at: int) -> int:
    """Return the position of the next character that is no white space."""
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _DuplicateError
    return found


def _duplicate(text: str, where: str) -> RequestError:
    seen: dict[Key, int] = {}
    for key, line in json_lines(text):
        if key in seen:
            return duplicate_key(where, key, seen[key], line)
        seen[key] = line
    return RequestError(f"{where}: a key is there twice", cure="keep one of the two")


def _own_words(error: json.JSONDecodeError, text: str) -> str:
    if not text[error.pos :].strip():
        return "it ends in the middle"
    return next(
        (ours for theirs, ours in _WORDS.items() if error.msg.startswith(theirs)), "not understood here"
    )
