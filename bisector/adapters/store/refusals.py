"""Errors that every coordinator raises: equal names, reservations at one time, lost leases."""

from __future__ import annotations

from collections.abc import Sequence

from bisector.errors import Fenced, RequestError
from bisector.model.leases import HEARTBEAT_TTL_SECONDS, Executor, Lease, Reservation
from bisector.utc_time import bare_minute, minute


def lease_lost(lease: Lease) -> Fenced:
    """Return the error of a lease that holds no longer."""
    return Fenced(f"'{lease.resource}' is no longer leased to '{lease.executor}' (epoch {lease.epoch})")


def executor_fenced(executor: str) -> Fenced:
    """Return the error of an executor that counts as dead."""
    return Fenced(f"the executor '{executor}' counts as dead: it was not heard of for too long, or replaced")


def check_name(executor: str, others: Sequence[Executor]) -> None:
    """Raise RequestError where another executor of this name lives. others: of this name, not fenced."""
    where = executor.rpartition("-")[0]
    for other in others:
        if other.silent < HEARTBEAT_TTL_SECONDS and (not where or other.id.rpartition("-")[0] != where):
            raise RequestError(
                f"a worker '{other.name}' runs already: it was heard of {other.silent:.0f} s ago",
                cure="give this one another name, or end that one; "
                f"{HEARTBEAT_TTL_SECONDS:.0f} s after it was killed the name is free",
            )


def check_reservation(wanted: Reservation, others: Sequence[Reservation], now: float) -> None:
    """Raise RequestError where a reservation ends too early, or another person has the testbed then."""
    if wanted.end <= max(wanted.start, now):
        raise RequestError(
            f"the reservation of '{wanted.testbed}' would end before it begins, or has ended already",
            cure="name an end that is later",
        )
    for other in others:
        if (
            other.testbed == wanted.testbed
            and other.who != wanted.who
            and other.start < wanted.end
            and wanted.start < other.end
        ):
            when = f"{bare_minute(other.start)} to {minute(other.end)}"
            raise RequestError(
                f"'{wanted.testbed}' is reserved for {other.who} in that time: {when}",
                cure=f"ask {other.who}, or take another time or testbed",
            )
