"""Leases: processes that execute, what they hold, the state of testbeds, and reservations.

Times are seconds since the epoch by the database's clock, which all processes share.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, get_args

HEARTBEAT_TTL_SECONDS = 30.0
"""An executor that was not heard of for so long counts as dead. 3 s gave false deaths on a loaded machine."""
WANTED_TTL_SECONDS = 10.0
"""Who waits for a lease asks once a second; who has not asked for so long waits for it no longer."""

TestbedState = Literal["good", "suspect", "maintenance", "retired"]
TESTBED_STATES: tuple[TestbedState, ...] = get_args(TestbedState)


@dataclass(frozen=True, slots=True)
class Executor:
    """One process that executes. id: new at each start; name: the worker's; seen: its last heartbeat.

    silent: seconds since then. fenced: it counts as dead, and can write nothing any more.
    """

    id: str
    name: str
    seen: float
    silent: float
    fenced: bool


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to use a resource: a testbed's name, or what else one executor may use at a time.

    epoch: grows with each lease of the resource, whoever holds it; what has a lower one is refused.
    """

    resource: str
    executor: str
    epoch: int


@dataclass(frozen=True, slots=True)
class TestbedStatus:
    """What a testbed may be used for, why, who said so and since when."""

    __test__ = False  # not a pytest class

    name: str
    state: TestbedState
    reason: str
    by: str
    since: float


@dataclass(frozen=True, slots=True)
class Reservation:
    """A person's time on a testbed."""

    testbed: str
    who: str
    start: float
    end: float

    def joined(self, others: Iterable[Reservation]) -> Reservation:
        """Return it joined with those of the same person that overlap or touch it, as one reservation."""
        met = [
            one
            for one in (self, *others)
            if (one.testbed, one.who) == (self.testbed, self.who)
            and one.start <= self.end
            and self.start <= one.end
        ]
        return replace(self, start=min(one.start for one in met), end=max(one.end for one in met))
