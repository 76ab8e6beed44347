"""Alerts in words. Rows are those of `alert list --json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bisector.model.decisions import Interval
from bisector.model.format import count, percent, places, signed
from bisector.model.stored_bisection import MAX_CULPRITS


def change_words(row: Mapping[str, Any]) -> str:
    """Return '+12.3% worse'."""
    word = "worse" if row["direction"] == "regression" else "better"
    return f"{size_words(row, row['effect']['estimate'])} {word}"


def end_names(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return what people call the two commits of an alert: the later one of an improvement is not bad."""
    return ("last good", "first bad") if row["direction"] == "regression" else ("last worse", "first better")


def range_words(row: Mapping[str, Any]) -> str:
    """Return how many commits the range of an alert has, and between what; '' where that is not known."""
    commits = row.get("commits")  # a server of before does not tell it
    before, after = end_names(row)
    return "" if commits is None else f"{count(commits, 'commit')} after '{before}', up to '{after}'"


def size_words(row: Mapping[str, Any], value: float) -> str:
    """Return a change in the alert's unit, or in percent with the digits that its interval has."""
    if row["unit"]:
        return signed(value, row["unit"])
    limits = [row["effect"].get(limit) for limit in ("low", "estimate", "high")]
    return percent(value, 1 if None in limits else places(Interval(*limits)))


def culprit_lines(row: Mapping[str, Any]) -> list[str]:
    """Return what was found, a commit a line; subject: of the first. An alert keeps the first few."""
    out = [*row["culprits"]]
    out[:1] = [f"{sha} {row['subject']}".rstrip() for sha in out[:1]]
    if len(out) >= MAX_CULPRITS:
        out.append("there may be more: the report of the bisection has all")
    return out


def result_words(row: Mapping[str, Any]) -> str:
    """Return what is known of the cause, in a line."""
    if row["duplicate_of"]:
        return f"duplicate of {row['duplicate_of']}"
    if row["culprits"]:
        more = " ..." if len(row["culprits"]) > 1 else ""
        return f"{row['culprits'][0][:12]}{more} {row['subject']}"
    if row["finding"] == "bisecting":
        return str(row["bisection"])
    return f"{row['last_good'][:12]} .. {row['first_bad'][:12]}"
