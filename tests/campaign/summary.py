"""What a campaign gave, as values and as a table: how many faults of each class, and how it went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.campaign.faults import CLASSES
from tests.campaign.supervising import Result

_COLUMNS = ("drawn", "struck", "cases", "green")


def summarise(seed: int, results: Sequence[Result]) -> dict[str, Any]:
    """Return the counts of each class and of all, and which cases failed.

    drawn, struck: faults; a fault whose moment never came did not strike. cases: with at least one of the
    class; green: cases in which all held.
    """
    classes = {kind: _counts(kind, [r for r in results if kind in r.kinds]) for kind in CLASSES}
    total = {
        "drawn": sum(len(r.kinds) for r in results),
        "struck": sum(r.struck for r in results),
        "cases": len(results),
        "green": sum(not r.violations for r in results),
    }
    return {
        "seed": seed,
        "classes": classes,
        "all": total,
        "failed": [r.case for r in results if r.violations],
        "processes": sum(len(r.codes) for r in results),
        "seconds": round(sum(r.seconds for r in results)),
    }


def _counts(kind: str, having: Sequence[Result]) -> dict[str, int]:
    return {
        "drawn": sum(r.kinds.count(kind) for r in having),
        "struck": sum(r.kinds[: r.struck].count(kind) for r in having),
        "cases": len(having),
        "green": sum(not r.violations for r in having),
    }


def table(summary: Mapping[str, Any]) -> str:
    """Return it for people."""
    rows = [*summary["classes"].items(), ("all", summary["all"])]
    width = max(len(name) for name, _ in rows)
    lines = [" ".join(["class of faults".ljust(width), *(f"{name:>7}" for name in _COLUMNS)])]
    lines += [" ".join([name.ljust(width), *(f"{row[c]:>7}" for c in _COLUMNS)]) for name, row in rows]
    return "\n".join(lines)
