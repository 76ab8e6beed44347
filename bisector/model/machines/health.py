"""Health checks of testbeds: boots of a fixed kernel with a fixed workload, as they are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from bisector.model.leases import TestbedStatus

CHECKED_BY = "a health check"
"""Who made a testbed suspect, where no person did."""

QUARANTINED_BY = "quarantine"
"""Who made a machine suspect that failed in a bisection, or was not given back."""

Outcome = Literal["sound", "moved", "noisy", "failed"]
"""sound: as its first boots, or one of them; moved: another level; noisy: runs spread more; failed: the
kernel did not boot, or the workload did not run."""


@dataclass(frozen=True, slots=True)
class HealthPoint:
    """One boot of a health check. at: seconds since the epoch, by the database's clock.

    kernel: what was measured, name -> text; boots with other ones do not compare. values: of the deciding
    metric, one a run; empty for one that failed. words: what was found, for people.
    """

    testbed: str
    at: float
    kernel: Mapping[str, str]
    outcome: Outcome
    words: str
    values: tuple[float, ...] = field(default=())


def only_failed_to_boot(status: TestbedStatus | None, points: Sequence[HealthPoint]) -> bool:
    """Return whether a testbed is suspect for nothing but that it did not boot, a fault that may pass.

    points: of its checks, oldest first. Why it is suspect was known when it became that: what a check by hand
    found since then changes nothing about it.
    """
    if status is None or status.state != "suspect":
        return False
    until_then = [point.outcome for point in points if point.at <= status.since]
    return status.by == QUARANTINED_BY or (status.by == CHECKED_BY and until_then[-1:] == ["failed"])
