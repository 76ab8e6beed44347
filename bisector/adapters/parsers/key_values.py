"""Lines of a name and a value, with or without a unit: 'real: 1.5 s', 'real = 1.5', 'real 1.5'.

In time linear in the length of a line: a regular expression for these forms takes cubic time on a long line
of blanks, which a guest may print.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import NamedTuple

_SEPARATOR = re.compile(r"\[[^][]*\]|::|(?P<mark>[:=])")
"""A mark within brackets or two colons are part of a name: 'real[threads=4]', 'std::sort'."""


class KeyValue(NamedTuple):
    """One line. value: its text, a number or not; unit: '' where there is none."""

    key: str
    value: str
    unit: str


def separated(line: str) -> KeyValue | None:
    """Return the parts of 'key: value [unit]' or 'key = value [unit]', None for any other line."""
    mark = next((match for match in _SEPARATOR.finditer(line) if match["mark"]), None)
    if mark is None:
        return None
    key, words = line[: mark.start()].strip(), line[mark.end() :].split()
    if not key or not 1 <= len(words) <= 2:
        return None
    return KeyValue(key, words[0], words[1] if len(words) == 2 else "")


def of_known_key(line: str, keys: Container[str]) -> KeyValue | None:
    """Return the parts of a line for one of the keys, None for any other line; a blank may separate them.

    Keys may have blanks themselves: 'real time 1.5 s' is of 'real time'.
    """
    found = separated(line)
    if found is not None and found.key in keys:
        return found
    words = line.split()
    for tail in (1, 2):  # the longer key first
        key = " ".join(words[:-tail])
        if key and key in keys:
            return KeyValue(key, words[-tail], words[-1] if tail == 2 else "")
    return None
