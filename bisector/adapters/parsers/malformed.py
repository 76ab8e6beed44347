"""Wrong input, told the same way by every reader; and numbers, where a text can mean only one."""

from __future__ import annotations

import math
import re

from bisector.errors import RequestError

NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_PLAIN = re.compile(NUMBER)
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_COMMA = re.compile(r"[-+]?[\d.'’  ]*\d,\d+")


def wrong(where: str, what: str, right: str = "", details: str = "") -> RequestError:
    """Return the error: where it stands, what is wrong, what would be right."""
    return RequestError(f"{where}: {what}", details=details, cure=right)


def number(text: str, where: str, *, grouped: bool = False, right: str = "") -> float:
    """Return a finite number.

    grouped: '1,500,839' is one (perf writes such); without it every comma is refused, because nobody can
    tell 5,328 in thousands from 5.328 in a German locale; right: what would be, for the message of text
    that is no number at all. Raises RequestError.
    """
    if _PLAIN.fullmatch(text):
        value = float(text)
    elif grouped and _GROUPED.fullmatch(text):
        value = float(text.replace(",", ""))
    elif _COMMA.fullmatch(text):
        raise wrong(
            where,
            f"'{text}' has a comma, which is a decimal point in some locales and a separator in others",
            "measure with LC_ALL=C, or write the number as 1234.5",
        )
    else:
        try:
            value = float(text)  # 'nan', 'inf': numbers in form only
        except ValueError as error:
            raise wrong(where, f"'{text}' is not a number", right) from error
    if not math.isfinite(value):
        raise wrong(where, f"'{text}' is no finite number", "take out runs that failed")
    return value
