"""The queue in words: priorities, what a bisection does or waits for, and when it probably ends.

Rows are those of `queue --json`; times are seconds since the epoch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bisector.model.stored_bisection import PRIORITIES
from bisector.report.phrases import duration

_WORD_OF = {number: word for word, number in PRIORITIES.items()}


_FOR_A_PERSON = re.compile(r": suspect: |: its worker '.*' does not run$")
"""Reasons why a testbed is not used that end by what a person does, and that nobody may have begun."""


def priority_text(priority: int) -> str:
    """Return a priority as people say it: 'normal', '3'."""
    return _WORD_OF.get(priority, str(priority))


def expected(when: float | None, now: float) -> str:
    """Return a time that is expected, from now on; a dash where it is unknown."""
    return "\N{EM DASH}" if when is None else f"in {duration(max(when - now, 1.0))}"


def doing_now(row: Mapping[str, Any], now: float) -> str:
    """Return what a bisection of the queue does, or what it waits for."""
    if row["status"] == "interrupted":
        return "its executor was killed: the next one goes on"
    reasons = [f"{testbed}: {reason}" for testbed, reason in row["unusable"].items()]
    does = [f"measures on {', '.join(row['measures_on'])}"] if row["measures_on"] else []
    if row["prepares_on"]:
        does.append(f"builds or boots for {', '.join(row['prepares_on'])}")
    if does:  # a suspect testbed and a dead worker wait for a person, the others come back by themselves
        return "; ".join([*does, *(words for words in reasons if _FOR_A_PERSON.search(words))])
    if row["builds"]:
        return "a kernel is built; the testbed is left to others"
    if row["capped"]:
        return "; ".join([row["capped"], *reasons])
    waits = [f"{testbed}, which {other} has" for testbed, other in row["waits_for"].items()]
    if waits or not reasons:
        reasons.insert(0, f"waits for {'; '.join(waits) or 'a testbed or a kernel'}")
    begin = row["expected_begin"]
    if begin is not None and begin > now:
        reasons.append(f"begins {expected(begin, now)}")
    return "; ".join(reasons)
