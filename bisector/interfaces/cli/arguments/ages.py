"""Ages as options write them, and dates as tables show them."""

from __future__ import annotations

import datetime
import re

from bisector.errors import RequestError
from bisector.schemas.documents.document import shortened

_MAX_DAYS = 700_000
"""Back to the second century: Python has no dates before the year 1."""

_MAX_DIGITS = 7
"""So many say that a number is above that; int() refuses thousands."""


def days(text: str, name: str) -> float:
    """Return an age in days, '90d' or '12w'. name: of its option. Raises RequestError: less than a day."""
    found = re.fullmatch(r"0*(?P<number>[0-9]+)(?P<unit>[dw])", text)
    number = (
        int(found["number"][:_MAX_DIGITS]) * (7 if found["unit"] == "w" else 1) if found is not None else 0
    )
    if not 1 <= number <= _MAX_DAYS:
        wrong = "is not an age of a day or more" if number < 1 else f"is more than {_MAX_DAYS:,} days"
        raise RequestError(f"{name} '{shortened(text)}' {wrong}", cure="write days or weeks: 90d, 12w")
    return float(number)


def day(when: float) -> str:
    """Return the date of seconds since the epoch, in UTC."""
    return datetime.datetime.fromtimestamp(when, datetime.UTC).strftime("%Y-%m-%d")
