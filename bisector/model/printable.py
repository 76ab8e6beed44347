"""Text from elsewhere, made harmless for whoever reads it on a terminal, in a file or in a mail.

Commit subjects, build logs, consoles and names of files may hold what a terminal obeys (escape sequences,
also the 8-bit ones), what turns the order of letters around, and what nobody sees. All of it is
shown as escapes.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\uffa0"
    "\ufff9-\ufffb\ud800-\udfff"  # invisible, bidirectional, ends of lines; lone surrogates
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"  # musical formats; tags, variation selectors
)

MAX_SUBJECT_CHARACTERS = 500
"""Of a commit's subject and author: the kernel's are a line of a mail, of at most some 100 characters."""


def storable(text: str) -> str:
    """Return a text from elsewhere as every database can hold it: without NUL and half characters."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def cut(text: str, characters: int) -> str:
    """Return the same, at most so long."""
    sound = storable(text)
    return sound if len(sound) <= characters else f"{sound[: characters - 4]} ..."


def printable(text: str) -> str:
    """Return the text with \\x1b, \\u202e and the like for what no terminal may get.

    Newlines and tabs stay.
    """
    return _UNPRINTABLE.sub(_escaped, text.replace("\r\n", "\n"))


def printable_line(text: str) -> str:
    """Return the same as one line."""
    return printable(text).replace("\n", "\\n")


def printable_header(text: str) -> str:
    """Return the same as a value of a mail's header that holds no encoded word (RFC 2047).

    Programs that read mails, and Python's email package while it writes one, put what an encoded word stands
    for in its place: it may stand for ends of lines, and so for more headers (CVE-2024-6923).
    """
    return printable_line(text).replace("=?", "=\\x3f")


def printable_json(value: Any) -> str:  # noqa: ANN401 - anything that JSON holds
    """Return a value as indented JSON that says the same to a program and nothing to a terminal.

    Infinities and NaN, which JSON does not have, are null.
    """
    text = json.dumps(finite(value), indent=2, ensure_ascii=False, allow_nan=False)
    return _UNPRINTABLE.sub(lambda found: json.dumps(found[0])[1:-1], text)


def finite(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return a value with null for the numbers that JSON does not have: infinities and NaN."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return value


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
