"""Nights of a series in words. Rows are those of `series show --json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bisector.model.decisions import Interval
from bisector.model.format import change


def night_words(night: Mapping[str, Any], unit: str) -> str:
    """Return what a night showed, why it measured nothing, and its note, in a line.

    unit: `effect_unit` of the series.
    """
    return "; ".join(filter(None, (_verdict(night, unit), night["why"], night["note"])))


def _verdict(night: Mapping[str, Any], unit: str) -> str:
    found = night["verdict"]
    if found is None:
        return ""
    text = str(found["status"])
    if found["effect"] is not None:
        where = f"between the nights {found['last_good']} and {found['first_bad']}"
        text += f": {change(Interval(**found['effect']), unit)} {where}"
    if night["confirmation"]:
        text += f", {night['confirmed'] or 'being confirmed'} by {night['confirmation']}"
    return text
