"""Numbers as text, for reasons, conclusions and reports, and texts as numbers."""

from __future__ import annotations

import math
import re

from bisector.model.decisions import Interval

SHORT_FROM = 1e15
"""Numbers from which on they are written as 1.2e+15: a double has no more digits, and people read no more."""

_TWO_DIGITS_BELOW = 0.005
"""Width of an interval: half a percent or less, usual on the instruction clock, needs two digits."""

MOST_PLACES = 9
"""Decimal places of a number: chosen, nanoseconds of a number in seconds."""

_WHOLE_FROM = 0.995
"""Share from which on two figures would be '1e+02%'."""

_WHOLE_NUMBER = re.compile("[0-9]{1,18}")


def whole_number(text: str) -> int | None:
    """Return the number that a text is; None for one that is no number, or has more digits than 64 bits hold.

    str.isdigit takes a superscript two, too, and int raises for 5,000 digits.
    """
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else None


def count(number: int, thing: str) -> str:
    """Return '1 run', '2 runs'."""
    return f"{number} {thing}" if number == 1 else f"{number:,} {thing}s"


def plain(number: float) -> str:
    """Return a number without exponent, for limits: '0.000001', '1,000,000'."""
    return f"{number:,.6f}".rstrip("0").rstrip(".")


def percent(fraction: float, digits: int = 1) -> str:
    """Return a signed percentage; zero after rounding has no sign."""
    if not math.isfinite(fraction):
        return "?"
    if abs(fraction) >= SHORT_FROM:
        return f"{100 * fraction:+.4g}%"
    text = f"{100 * fraction:+.{digits}f}%"
    return text if any(digit in text for digit in "123456789") else text[1:]


def two_figures(fraction: float, sign: str = "") -> str:
    """Return a percentage of two figures, from 100% on a whole one: '0.042%', '3.1%', '160%'. sign: '+'."""
    if not math.isfinite(fraction):
        return "?"
    short = abs(fraction) < _WHOLE_FROM or abs(fraction) >= SHORT_FROM
    return f"{100 * fraction:{sign}.{'2g' if short else '0f'}}%"


def signed(value: float, unit: str = "") -> str:
    """Return '+0.12 s': a change in a metric's unit."""
    return f"{value:+.4g} {unit}".rstrip()


def signed_limits(value: Interval, unit: str) -> str:
    """Return '+0.1 .. +0.14 s': the limits, which are finite, of a change in a metric's unit."""
    return f"{signed(value.low)} .. {signed(value.high, unit)}"


def interval(value: Interval, digits: int = 2) -> str:
    """Return '+1.90% .. +2.30%', or 'none' if a limit is infinite."""
    if math.isinf(value.low) or math.isinf(value.high):
        return "none"
    return f"{percent(value.low, digits)} .. {percent(value.high, digits)}"


def places(value: Interval, least: int = 1) -> int:
    """Return the places after the point of a percentage with this interval, for three figures at most.

    least: fewest of them.
    """
    width, size = value.high - value.low, max(abs(value.low), abs(value.high))
    if not width < _TWO_DIGITS_BELOW:
        return least
    if not 0 < width < math.inf or not size < math.inf:
        return max(2, least)
    by_width, by_size = -math.floor(math.log10(50 * width)), 2 - math.floor(math.log10(100 * size))
    return min(max(2, least, min(by_width, by_size)), MOST_PLACES)


def effect_size(value: Interval, least: int = 1) -> str:
    """Return a relative change without its interval, but with its places. least: fewest of these."""
    return percent(value.estimate, places(value, least))


def change(value: Interval, unit: str = "", least: int = 2) -> str:
    """Return a change with its interval: '+2.10% (+1.90% .. +2.30%)', '+0.12 s (+0.1 .. +0.14 s)'.

    unit: '' where it is relative. least: fewest places of a percentage: two, where changes are told as sums.
    """
    if not unit:
        digits = places(value, least)
        return f"{percent(value.estimate, digits)} ({interval(value, digits)})"
    between = signed_limits(value, unit) if math.isfinite(value.high - value.low) else "none"
    return f"{signed(value.estimate, unit)} ({between})"


def size(count_bytes: float) -> str:
    """Return bytes as '12 kB', '3.4 MB', '1.2 GB'."""
    for unit, one in (("GB", 1e9), ("MB", 1e6)):
        if count_bytes >= one:
            return f"{count_bytes / one:.1f} {unit}"
    return f"{count_bytes / 1e3:.0f} kB"
