"""Ages as options write them, and dates as tables show them."""

from __future__ import annotations

import datetime
import re

from bisector.errors import RequestError


def days(text: str, name: str) -> float:
    """Return an age in days, '90d' or '12w'. name: of its option. Raises RequestError: less than a day."""
    found = re.fullmatch(r"(?P<number>[0-9]{1,5})(?P<unit>[dw])", text)
    number = int(found["number"]) * (7 if found["unit"] == "w" else 1) if found is not None else 0
    if number < 1:
        raise RequestError(
            f"{name} '{text[:40]}' is not an age of a day or more", cure="write days or weeks: 90d, 12w"
        )
    return float(number)


def day(when: float) -> str:
    """Return the date of seconds since the epoch, in UTC."""
    return datetime.datetime.fromtimestamp(when, datetime.UTC).strftime("%Y-%m-%d")
