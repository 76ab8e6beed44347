"""What the engine tells while it works; interfaces turn it into lines, bars and pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

EventKind = Literal["decision", "build", "boot", "run", "note", "trouble", "done"]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happens. commit: index in the graph, or None.

    text: a short sentence; reason: the planner's, with decisions; seconds: how long the finished thing took;
    left: seconds until the next culprit is located or proven, with decisions, where the planner knows; runs,
    boots, builds: totals of this bisection so far.
    """

    kind: EventKind
    text: str
    commit: int | None = None
    reason: str = ""
    testbed: str = ""
    seconds: float | None = None
    value: float | None = None
    left: float | None = None
    runs: int = 0
    boots: int = 0
    builds: int = 0


OnEvent = Callable[[Event], None]
"""Called from several threads; must return quickly and never raise."""
