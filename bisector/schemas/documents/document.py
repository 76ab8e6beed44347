"""Shared by the readers of YAML, TOML and JSON: the text of a file, limits of values, errors in one form."""

from __future__ import annotations

import datetime
import math
import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any, Literal

from bisector.errors import RequestError

Key = tuple[str, ...]
"""The path of a value in a document: the names of keys, and positions in lists from 0."""

Language = Literal["YAML", "TOML", "JSON"]

MAX_SETTINGS_BYTES = 1 << 20
"""Largest YAML or TOML file: the largest shipped one has 30 kB, and PyYAML needs 2 s for 1 MB."""

MAX_JSON_BYTES = 10 << 20
"""Largest JSON file that is not a result: reading that much takes 0.1 to 0.3 s."""

MAX_DEPTH = 100
"""Levels of nested lists and mappings: manifests have 4, and Python's recursion ends at some 1,000 frames."""

MAX_VALUES = 100_000
"""Values of a YAML document with its aliases expanded: 1 MB of YAML without aliases seldom has more."""

LARGEST_NUMBER = 1e100
"""Largest magnitude of a number. No measurement is larger, and the sum of a million of their squares is
finite."""

IN_RANGE = "write a number between -1e100 and 1e100; leave out what was not measured"
"""The cure of a larger one, in whatever form it stands."""

MAX_NAME_CHARACTERS = 500
"""Longest name of a metric, a testbed or a kernel in results: the Phoronix Test Suite joins a test and its
arguments to some 200 characters, and every line of a comparison repeats the name."""

_SHOWN_CHARACTERS = 80
"""Characters of a wrong value or line that a message repeats: more would hide what is wrong with it."""

NO_SUCH_FILE = "no such file"
"""Said only where there is nothing."""

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")
"""What YAML 1.2 calls not printable; TOML and JSON refuse nearly the same."""

_NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""What escapes can put into a text, and no file name, argument or database can hold."""

_CURES = {
    "YAML": "indent by spaces, not tabs, and put text with any of : # { } [ ] & * ! | % @ ` in quotes",
    "TOML": 'write KEY = VALUE, one a line, with text in "quotes" and lists in [brackets]',
    "JSON": "let a program write it anew; python3 -m json.tool shows whether it is valid",
}


def shown(value: object) -> str:
    """Return a value for a message: on one line, without control characters, cut after 80 characters."""
    if type(value) is int and abs(value) > LARGEST_NUMBER:
        return "a number of more than 100 digits"  # Python refuses to print one of more than 4,300
    if value is None or isinstance(value, bool):
        return "nothing" if value is None else str(value).lower()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()  # as TOML writes it
    if isinstance(value, str | PurePath):
        value = str(value)[:1000]
    return shortened(repr(value))


def shortened(text: str) -> str:
    """Return a text cut after 80 characters, with characters that are not printable escaped."""
    plain = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[: _SHOWN_CHARACTERS + 1])
    return plain if len(plain) <= _SHOWN_CHARACTERS else f"{plain[:_SHOWN_CHARACTERS]}..."


def key_text(key: Key) -> str:
    """Return the path of a value as messages write it."""
    return shortened(".".join(key))


def is_file(path: Path) -> bool:
    """Return whether there is a file; False also for a name that no file can have, such as one too long."""
    try:
        return path.is_file()
    except OSError:
        return False


def exists(path: Path) -> bool:
    """Return whether there is a file or folder; False also for a name that none can have."""
    try:
        return path.exists()
    except OSError:
        return False


def why_no_file(path: Path) -> str:
    """Return the words of a message about a path that is not a regular file, or cannot be looked at."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "is a link to what is not there" if path.is_symlink() else NO_SUCH_FILE
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        return f"cannot be read: {getattr(error, 'strerror', None) or 'no file can have that name'}"
    return "is a folder" if stat.S_ISDIR(mode) else "is not a regular file"


def expand_user(path: str | Path) -> Path:
    """Return a path with '~' replaced. Raises RequestError for a user that this machine does not know."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise RequestError(
            f"'{shortened(str(path))}': there is no such user's home", cure="write the path from / on"
        ) from error


def read_document(path: Path, max_bytes: int = MAX_SETTINGS_BYTES, name: str = "") -> str:
    """Return the text of a regular file in UTF-8. Raises RequestError. name: as `read_bytes`."""
    return decode(read_bytes(path, max_bytes, name), name or shown_path(path))


def read_bytes(path: Path, max_bytes: int, name: str = "") -> bytes:
    """Return the content of a regular file. Raises RequestError; never waits, as for a pipe.

    name: of the file in errors, its path by default.
    """
    name = name or shown_path(path)
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise RequestError(
                    f"{name}: is not a regular file", cure="name a file, not a pipe or a device"
                )
            data = file.read(max_bytes + 1)
    except IsADirectoryError as error:
        raise RequestError(f"{name}: is a folder", cure="name a file in it") from error
    except FileNotFoundError as error:
        raise RequestError(
            f"{name}: {why_no_file(path)}", cure="mend the path, or create the file"
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or "no file can have that name"
        raise RequestError(f"{name}: cannot be read: {reason}", cure="mend the path or its rights") from error
    if len(data) > max_bytes:
        raise RequestError(
            f"{name}: larger than {max_bytes >> 20} MiB, which no file of this kind has",
            cure="look whether it is the right file",
        )
    return data


def decode(data: bytes, where: str) -> str:
    """Return UTF-8 text. Raises RequestError, also for a byte order mark and control characters."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RequestError(
            f"{where}:{line}: not text in UTF-8: the byte 0x{data[error.start]:02x}",
            cure="save the file as UTF-8; 'iconv -f latin1 -t utf-8' converts one from Latin-1",
        ) from error
    if text.startswith("\ufeff"):
        raise RequestError(
            f"{where}:1: begins with a byte order mark", cure="save the file as UTF-8 without that mark"
        )
    control = _CONTROL.search(text)
    if control is not None:
        raise RequestError(
            f"{where}:{line_of(text, control.start())}: holds the control character U+{ord(control[0]):04X}",
            cure="take it out; in a text it is written with a backslash",
        )
    return text


def shown_path(path: Path) -> str:
    """Return a path for a message; bytes that are not UTF-8 and control characters are escaped."""
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(path))
    return text if len(text) <= 500 else f"{text[:200]}...{text[-200:]}"


def line_of(text: str, position: int) -> int:
    """Return the line of a position, from 1."""
    return text.count("\n", 0, position) + 1


def nearest_line(lines: Mapping[Key, int], key: Key) -> int:
    """Return the line of a key, or of the table or list that it is in; 1 where none is known."""
    return next((lines[key[:n]] for n in range(len(key), 0, -1) if key[:n] in lines), 1)


def syntax_error(language: Language, where: str, text: str, line: int, what: str) -> RequestError:
    """Return the error for text that is not in its language; the line itself is the detail."""
    lines = text.splitlines()
    content = lines[line - 1] if 0 < line <= len(lines) else ""
    return RequestError(
        f"{where}:{line}: not valid {language}: {what}", details=shortened(content), cure=_CURES[language]
    )


def duplicate_key(where: str, key: Key, first: int, second: int) -> RequestError:
    """Return the error for a key that is there twice, with the lines of both."""
    return RequestError(
        f"{where}:{second}: the key '{key_text(key)}' is there already in line {first}",
        cure="keep one of the two: nobody can tell which is meant",
    )


def too_deep(where: str) -> RequestError:
    """Return the error for lists and mappings in too many others."""
    return RequestError(
        f"{where}: more than {MAX_DEPTH} lists or mappings in each other", cure="look at its brackets"
    )


def too_many_digits(where: str) -> RequestError:
    """Return the error for a number that Python refuses to read: one of more than 4,300 digits."""
    return RequestError(f"{where}: a number of thousands of digits", cure="write a number below 1e100")


def place_of_long_number(text: str, where: str) -> str:
    """Return the place of the first number that Python refuses to read."""
    number = re.search("[0-9_]{4000}", text)
    return f"{where}:{line_of(text, number.start() if number else 0)}"


def check_values(value: Any, place: Callable[[Key], str]) -> None:  # noqa: ANN401 - a document
    """Raise RequestError for a document that is too deep, or a number that is not finite or too large.

    place: from a value's path to the file and line where it stands.
    """
    waiting: list[tuple[Key, Any]] = [((), [value])]
    while waiting:
        path, container = waiting.pop()
        if len(path) > MAX_DEPTH:
            raise too_deep(place(path[1:]))
        for name, one in container.items() if isinstance(container, dict) else enumerate(container):
            kind = type(one)
            if kind is dict or kind is list:
                waiting.append(((*path, str(name)), one))
            elif kind in (int, float) and not -LARGEST_NUMBER <= one <= LARGEST_NUMBER:
                _refuse_number((*path, str(name))[1:], one, place)
            elif kind is str and _NO_TEXT.search(one):
                raise _no_text((*path, str(name))[1:], place)
            if isinstance(name, str) and _NO_TEXT.search(name):
                raise _no_text(path[1:], place)


class WrongValueError(RequestError):
    """A value that no document may have. key: its path; what: what is wrong, without the place."""

    def __init__(self, key: Key, what: str, place: Callable[[Key], str], cure: str) -> None:
        super().__init__(
            f"{place(key)}: key '{key_text(key)}': {what}" if key else f"{place(key)}: {what}", cure=cure
        )
        self.key, self.what = key, what


def _no_text(key: Key, place: Callable[[Key], str]) -> RequestError:
    what = "text with a NUL character or half a character"
    return WrongValueError(key, what, place, "take the escape (\\0, \\ud800) out of it")


def _refuse_number(key: Key, value: float, place: Callable[[Key], str]) -> None:
    what = "is no finite number" if isinstance(value, float) and not math.isfinite(value) else "is too large"
    raise WrongValueError(key, f"{shown(value)} {what}", place, IN_RANGE)
