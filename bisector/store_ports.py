"""The ports of durable memory: stored bisections, who may use what, and files that hosts give each other.

The first two lie in one database (`bisector/adapters/store`); files are in memory, in a folder that hosts
share, or behind HTTP (`bisector/adapters/artefacts`). All pass the same suites in `tests/contract`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from bisector.model.artefacts import Artefact
from bisector.model.decisions import Conclusion, Decision, Measure
from bisector.model.leases import (
    HEARTBEAT_TTL_SECONDS,
    Executor,
    Lease,
    Reservation,
    TestbedState,
    TestbedStatus,
)
from bisector.model.machines.health import HealthPoint, Outcome
from bisector.model.records import Record
from bisector.model.stored_bisection import Action, Stored, Summary


class Store(Protocol):
    """Durable memory: bisections and their records, append-only until a bisection is removed."""

    def fenced(self, lease: Lease) -> Store:
        """Return this store for the holder of a lease: writing raises Fenced once the lease is lost."""
        ...

    def create(self, stored: Stored, events: Sequence[Record | Decision] = ()) -> None:
        """Add a bisection and what happened in it elsewhere. Raises RequestError: the id exists."""
        ...

    def load(self, bisection: str) -> Stored:
        """Return one bisection. Raises RequestError naming the ones that exist."""
        ...

    def list(
        self, beginning: str = "", limit: int | None = None, statuses: Collection[str] = (), since: float = 0
    ) -> Sequence[Summary]:
        """Return summaries, newest first. beginning: of ids; limit: so many; since: changed then or later."""
        ...

    def append(self, bisection: str, record: Record) -> int:
        """Add a record; return its sequence number: from 1 on, one more than the bisection's last event."""
        ...

    def append_while_open(self, bisection: str, record: Record) -> int | None:
        """Add a record as `append` does. None: the bisection is over, or its last decision is its end."""
        ...

    def records(self, bisection: str, *, after: int = 0) -> Sequence[tuple[int, Record]]:
        """Return (sequence number, record), oldest first; only those with a number above `after`."""
        ...

    def decide(self, bisection: str, decision: Decision) -> int:
        """Keep what the planner decided, with its reason; return its sequence number."""
        ...

    def begin_trial(self, bisection: str, testbed: str, trial: Measure, *, seen: int) -> int | None:
        """Keep a decision, and that its trial is under way on a testbed, until `end_trial` or its executor's
        death. Return its number; None: another process decided something after `seen`; decide anew.
        """
        ...

    def end_trial(self, bisection: str, testbed: str) -> None:
        """Take note that the trial of a testbed is over, well or not; does nothing where there is none."""
        ...

    def trials(self, bisection: str) -> tuple[int, Mapping[str, Measure]]:
        """Return the number of the last event, and the trials under way in all processes, by testbed."""
        ...

    def trials_of_others(self, executor: str) -> Sequence[tuple[str, str]]:
        """Return (bisection, testbed) of the trials under way in other processes than an executor."""
        ...

    def note_building(self, bisection: str, building: bool) -> None:
        """Take note whether a kernel is built for a bisection, if there is one, that has left its testbed."""
        ...

    def conclude(self, bisection: str, conclusion: Conclusion, *, seen: int) -> int | None:
        """Keep the end of a search; return its number. None: a trial is under way, or there are events after
        `seen`; decide anew.
        """
        ...

    def number_boot(self, bisection: str, at_least: int) -> int:
        """Return a number that no boot of the bisection had, and that none will have again."""
        ...

    def decisions(self, bisection: str, *, after: int = 0) -> Sequence[tuple[int, Decision]]:
        """Return (sequence number, decision) as `records` does; numbers are shared with it."""
        ...

    def seconds_spent(self, bisection: str) -> Mapping[str, float]:
        """Return the seconds of all records that have any, by the name of their type ('Built', 'Ran')."""
        ...

    def status(self, bisection: str) -> str:
        """Return the status alone, quickly. Raises RequestError for an unknown id."""
        ...

    def set_status(
        self,
        bisection: str,
        status: str,
        conclusion: Conclusion | None = None,
        *,
        expected: Collection[str] = (),
        action: Action | None = None,
    ) -> bool:
        """Change the status and, if given, the conclusion; return whether it was changed.

        expected: it is changed from one of these alone, by default from any: what others set meanwhile stays.
        action: of the person whose wish it is; its time is the database's.
        Raises RequestError for an unknown id.
        """
        ...

    def set_priority(self, bisection: str, priority: int, action: Action) -> None:
        """Change the priority; whoever executes the bisection asks for it. Raises RequestError."""
        ...

    def remove(self, bisection: str) -> None:
        """Forget a bisection with all its records. Raises RequestError for an unknown id."""
        ...

    def give_back(self) -> int:
        """Return the space of removed rows to the file system; return the number of bytes."""
        ...


class Coordinator(Protocol):
    """Who may use what: executors and their leases, the state of testbeds, reservations."""

    def now(self) -> float:
        """Return the database's time, seconds since the epoch."""
        ...

    def register(self, executor: str, name: str) -> None:
        """Add an executor by a new id, alive from now on; its name is free for one living executor.

        One whose id is the same before the last '-' was our predecessor, and is fenced. Raises RequestError:
        there is another one of this name, and it lives.
        """
        ...

    def heartbeat(self, executor: str) -> None:
        """Say that an executor lives. Raises Fenced: it counts as dead, and must end."""
        ...

    def unregister(self, executor: str) -> None:
        """Forget an executor that ends, with its leases. Does nothing for one that is not known."""
        ...

    def executors(self) -> Sequence[Executor]:
        """Return all that were registered and did not unregister, by name and last heartbeat."""
        ...

    def fence_silent(self, ttl: float = HEARTBEAT_TTL_SECONDS) -> Sequence[Executor]:
        """Fence executors without a heartbeat for `ttl` seconds, and free their leases; return those fenced.

        When it returns, none of their writes is under way.
        """
        ...

    def acquire(self, resource: str, executor: str) -> Lease | None:
        """Return a lease with a new epoch; None while another executor holds one, or waited before us.

        After None we wait for it, as long as we ask again and again. Raises Fenced.
        """
        ...

    def check(self, lease: Lease) -> None:
        """Raise Fenced where a lease holds no longer."""
        ...

    def wanted(self, executor: str) -> Collection[str]:
        """Return what an executor has leased and another one waits for."""
        ...

    def release(self, lease: Lease) -> None:
        """Free the resource. Does nothing for a lease that holds no longer."""
        ...

    def leases(self) -> Sequence[Lease]:
        """Return the leases that are held, by resource."""
        ...

    def forget_unused(self, seconds: float) -> int:
        """Forget leases that are free and executors that count as dead, both for so long; return how many."""
        ...

    def bind_testbed(self, testbed: str, host: str, *, move: bool) -> str:
        """Return the host that has a testbed, this one if none has it. move: this one has it from now on."""
        ...

    def testbed_hosts(self) -> Mapping[str, str]:
        """Return the hosts of testbeds that were bound to one, by testbed."""
        ...

    def set_testbed(self, name: str, state: TestbedState, reason: str, by: str) -> None:
        """Say what a testbed may be used for from now on, and why."""
        ...

    def testbeds(self) -> Sequence[TestbedStatus]:
        """Return the status of all testbeds that ever had one, by name; others are good."""
        ...

    def reserve(self, testbed: str, who: str, end: float, start: float | None = None) -> Reservation:
        """Reserve a testbed for a person, by default from now on; with their own that it meets it is one.

        Raises RequestError: the end is not after the start, or another person has it in that time.
        """
        ...

    def unreserve(self, testbed: str, who: str) -> int:
        """End a person's reservations of a testbed; return how many there were."""
        ...

    def reservations(self) -> Sequence[Reservation]:
        """Return those that have not ended, by start."""
        ...

    def add_machine_time(self, owner: str, seconds: float) -> None:
        """Count seconds of testbeds that an owner's bisections had, in the present hour."""
        ...

    def machine_time(self, owner: str) -> Mapping[int, float]:
        """Return the seconds of the last week, by hour since the epoch."""
        ...


class ArtefactStore(Protocol):
    """Files that one host has made and others use. All methods raise InfrastructureError where it is away."""

    def check(self) -> None:
        """Raise InfrastructureError unless artefacts can be put and read now."""
        ...

    def has(self, artefact: Artefact) -> bool:
        """Return whether there is one. Only `get` shows whether it is whole."""
        ...

    def put(self, artefact: Artefact, file: Path) -> str:
        """Keep a copy of a file; return its SHA-256 (hex). Others see all of it or nothing.

        Several may put one artefact at once: any of theirs is then given. Raises InfrastructureError: too
        large, no space.
        """
        ...

    def get(self, artefact: Artefact, target: Path) -> bool:
        """Write an artefact to a new file, its checksum verified; False where there is none.

        Raises DamagedArtefact: it is not what was put; it was set aside, and may be put again.
        """
        ...

    def set_aside(self, artefact: Artefact) -> None:
        """Withdraw an artefact whose content is not what it should be; it may be put again."""
        ...


class HealthStore(Protocol):
    """Boots of health checks, and when each testbed was used last."""

    def add_point(
        self,
        testbed: str,
        kernel: Mapping[str, str],
        outcome: Outcome,
        words: str,
        values: Sequence[float] = (),
    ) -> None:
        """Keep a boot of a health check, made now. kernel: what was measured; values: one a run."""
        ...

    def points(self, testbed: str) -> Sequence[HealthPoint]:
        """Return all boots of a testbed's health checks, oldest first."""
        ...

    def forget_points(self, testbed: str) -> None:
        """Forget a testbed's health checks: it has changed, and its next boots are the reference."""
        ...

    def note_use(self, testbed: str) -> None:
        """Write down that a testbed was used until now."""
        ...

    def last_use(self, testbed: str) -> float | None:
        """Return when a testbed was used last, None where that is not recorded."""
        ...
