"""Units of measured numbers: which mean the same, and numbers of one written in another.

Only what has one meaning is known. 'KB' and 'K' are 1000 in some programs and 1024 in others, so they are
converted into nothing else: other programs may have written the other number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from bisector.stats.samples import SampleSeries

_Table = Mapping[str, tuple[Fraction, tuple[str, ...]]]

_TIMES: _Table = {
    "s": (Fraction(1), ("sec", "secs", "second", "seconds")),
    "ms": (Fraction(1, 10**3), ("msec", "msecs", "millisecond", "milliseconds")),
    "us": (Fraction(1, 10**6), ("µs", "μs", "usec", "usecs", "microsecond", "microseconds")),
    "ns": (Fraction(1, 10**9), ("nsec", "nsecs", "nanosecond", "nanoseconds")),
    "min": (Fraction(60), ("minute", "minutes")),
    "h": (Fraction(3600), ("hour", "hours")),
}
_BYTES: _Table = {
    "B": (Fraction(1), ("byte", "bytes")),
    **{f"{p}B": (Fraction(1000**n), ()) for n, p in enumerate(("k", "M", "G", "T"), start=1)},
    **{f"{p}iB": (Fraction(1024**n), ()) for n, p in enumerate(("K", "M", "G", "T"), start=1)},
}
_FREQUENCIES: _Table = {f"{p}Hz": (Fraction(1000**n), ()) for n, p in enumerate(("", "k", "M", "G"))}

_KNOWN: Mapping[str, tuple[str, Fraction]] = {
    name: (kind, size)
    for kind, units in (("time", _TIMES), ("bytes", _BYTES), ("frequency", _FREQUENCIES))
    for unit, (size, others) in units.items()
    for name in (unit, *others)
}
"""Unit -> what it measures, and how many of the kind's first unit it is."""

_SCALED = re.compile(
    r"(?P<prefix>[kKMGT])(?P<of>|B|bytes?|b|bits?|bps|ops?|iops|jops|flops?|insns?|instructions|calls|events|"
    r"frames|iterations|iter|loops|messages|msgs|packets|pkts|pps|qps|queries|reqs?|requests|rps|tps|"
    r"transactions|txns?)",
    re.IGNORECASE,
)
_PREFIXES = {"k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
"""As dd, iperf and the standard write them. Programs that mean 1024 are wrong by 2.4% where their prefix
changes, which is less than being wrong by a thousand."""


def factor(unit: str, other: str) -> Fraction | None:
    """Return by what a number in `unit` is multiplied to be one in `other`; None where that is unknown.

    Rates such as 'MB/s' are units over times; what is counted ('ops', 'calls') must be written alike.
    """
    if unit == other:
        return Fraction(1)
    (over, under), (other_over, other_under) = _parts(unit), _parts(other)
    if over[0] != other_over[0] or under[0] != other_under[0]:
        return None
    return over[1] / other_over[1] * other_under[1] / under[1]


def to_base(unit: str) -> Fraction:
    """Return by what a number in `unit` is multiplied to have no prefix: us to s, KiB/s to B/s.

    For the numbers of one program, which chooses the prefix by the size of each number. A unit that is not
    known stays what it is.
    """
    over, _, under = unit.partition("/")
    return _size(over) / _size(under)


def _size(unit: str) -> Fraction:
    scaled = _SCALED.fullmatch(unit)
    if unit in _KNOWN or scaled is None or unit[0] in "mgt":  # 'm' may be minutes, metres or a thousandth
        return _KNOWN.get(unit, (unit, Fraction(1)))[1]
    return Fraction(_PREFIXES[scaled["prefix"].lower()])


def convert(series: SampleSeries, unit: str) -> SampleSeries:
    """Return the series in another unit. Raises ValueError where the unit of its numbers is unknown."""
    by = factor(series.unit, unit)
    if by is None:
        raise ValueError(f"'{series.unit}' cannot be converted into '{unit}'")
    boots = tuple(tuple(v * by.numerator / by.denominator for v in boot) for boot in series.boots)
    return replace(series, boots=boots, unit=unit)


def _parts(unit: str) -> tuple[tuple[str, Fraction], tuple[str, Fraction]]:
    """Return (kind, size) of what stands over and under a rate's stroke; what is unknown is its own kind."""
    over, _, under = unit.partition("/")
    return _KNOWN.get(over, (over, Fraction(1))), _KNOWN.get(under, (under, Fraction(1)))
