"""Findings of checks of a lab's machines, in words that their owner can act on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Result = Literal["ok", "doubtful", "wrong", "not tried"]
"""doubtful: it works, and something may hurt later; wrong: a trial would fail there; not tried: nothing is
known, because the lab does not have it, or because what it needs has failed already."""


@dataclass(frozen=True, slots=True)
class LabFinding:
    """One check of one machine. found: the evidence, or why it was not tried; details: output, if any.

    is_setting: the inventory or a setting is wrong, and not the machine.
    """

    check: str
    result: Result
    found: str
    cure: str = ""
    details: str = ""
    seconds: float = 0.0
    is_setting: bool = False


@dataclass(frozen=True, slots=True)
class MachineFindings:
    """All checks of one machine. name: its role and name, as 'testbed box1'."""

    name: str
    findings: tuple[LabFinding, ...]
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether it can be used: nothing is wrong."""
        return self.first_wrong() is None

    def first_wrong(self) -> LabFinding | None:
        """Return the first check that failed, None if none did."""
        return next((one for one in self.findings if one.result == "wrong"), None)


def worst(findings: Iterable[LabFinding]) -> Result:
    """Return the worst result of several; what was not tried counts as nothing unless all of it was."""
    results = {one.result for one in findings}
    order: tuple[Result, ...] = ("wrong", "doubtful", "ok", "not tried")
    return next((result for result in order if result in results), "not tried")
