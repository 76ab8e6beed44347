"""Using a testbed outside a bisection: by the same rules as bisections, so that nobody measures beside us."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from bisector.app.testbeds.testbed_hosts import misplaced_testbeds, require_own
from bisector.engine import state_lock
from bisector.engine.availability import why_not
from bisector.engine.machines.giving_back import naming_what_is_left
from bisector.engine.membership import START, join, testbed_resource
from bisector.errors import InfrastructureError, Interrupted, RequestError
from bisector.model.leases import TestbedState
from bisector.model.machines.health import QUARANTINED_BY

if TYPE_CHECKING:
    from bisector.app.wiring import Stop, Wiring
    from bisector.engine.membership import Membership
    from bisector.ports import Progress, Testbed
    from bisector.store_ports import Coordinator

_USER = re.compile(r"(?P<process>process \d+) on \S+ \((?P<doing>.*), state folder .*")
"""A lock's holder, as `Wiring.user` writes it."""
_POLL_SECONDS = 1.0
"""How often to ask for a testbed that another host uses: visits take minutes."""


def require_allowed(wiring: Wiring, testbed: str, besides: tuple[TestbedState, ...] = ()) -> None:
    """Raise RequestError where a testbed must not be used: its state, or another person's reservation.

    besides: states that allow this use. One's own reservation is a permission.
    """
    if not wiring.has_store:
        return
    reason = why_not(wiring.coordinator, wiring.settings.owner, besides).get(testbed)
    if reason is not None:
        raise RequestError(
            f"the testbed '{testbed}' is not to be used: {reason}",
            cure=f"'perfbisect testbed list' shows others; 'perfbisect testbed release {testbed}' frees it"
            if not reason.startswith("reserved")
            else "wait, ask for it, or name another one: 'perfbisect testbed list' shows them",
        )


def quarantine(wiring: Wiring, testbed: str, reason: str) -> None:
    """Take a machine that has failed out of use; a sound health check or a person puts it back."""
    state = next((s.state for s in wiring.coordinator.testbeds() if s.name == testbed), "good")
    if state == "good":
        wiring.coordinator.set_testbed(testbed, "suspect", reason, QUARANTINED_BY)


@contextmanager
def given_back(machine: Testbed, progress: Progress) -> Iterator[None]:
    """Give a machine back at the end. Raises InfrastructureError: it was not, though all else went well;
    Interrupted, see `give_back`."""
    try:
        yield
    except BaseException:
        give_back_after_error(machine, progress)
        raise
    give_back(machine, progress)


def give_back_after_error(machine: Testbed, progress: Progress) -> None:
    """Give a machine back as `give_back`, but only report a failure, which must not hide the first error."""
    try:
        give_back(machine, progress)
    except InfrastructureError as error:
        progress(f"{error.message}; {error.cure}")


def give_back(machine: Testbed, progress: Progress) -> None:
    """Give a machine back. Raises InfrastructureError; Interrupted, with what is left, at another Ctrl-C."""
    with naming_what_is_left(lambda: [machine.name] if machine.has_own_kernel else []):
        machine.give_back(progress)


def alone(wiring: Wiring, doing: str) -> AbstractContextManager[None]:
    """Return a lock against bisections of this state folder; with a database server leases do that."""
    if wiring.shared_coordinator is not None:
        return nullcontext()
    if wiring.has_store:
        _ = wiring.database  # first: an older file is converted only while nobody, not even we, has the lock
    return state_lock.lock(wiring.settings.state_dir, doing)


@contextmanager
def use_testbed(
    wiring: Wiring,
    testbed: str,
    progress: Progress,
    stop: Stop | None = None,
    besides: tuple[TestbedState, ...] = (),
) -> Iterator[None]:
    """Hold a testbed against everybody else, on all hosts; waits while another one uses it.

    Raises RequestError as `require_allowed` and `require_own` do, Interrupted when told to stop.
    """
    require_own(wiring, [testbed])
    with (
        _leased(wiring, [testbed], progress, stop, besides),
        wiring.claim_testbed(testbed, progress, stop),
    ):
        yield


@contextmanager
def use_this_machine(wiring: Wiring, progress: Progress) -> Iterator[Testbed]:
    """Give this machine as a testbed, held as `use_testbed` does: the inventory may have it as a testbed."""
    local = [s for s in wiring.lab.testbeds if s.variables.kind == "local"] if wiring.settings.lab else []
    others = misplaced_testbeds(wiring, local)
    here = [spec.name for spec in local if spec.name not in others]
    with _leased(wiring, here, progress), wiring.this_machine() as testbed:
        yield testbed


@contextmanager
def _leased(
    wiring: Wiring,
    testbeds: Sequence[str],
    progress: Progress,
    stop: Stop | None = None,
    besides: tuple[TestbedState, ...] = (),
) -> Iterator[None]:
    """Hold the leases of testbeds on a database server; check in any case that they may be used."""
    for testbed in testbeds:
        require_allowed(wiring, testbed, besides)
    coordinator = wiring.shared_coordinator
    if coordinator is None or not testbeds:
        yield
        return
    name = f"{START}{socket.gethostname()}:{os.getpid()}"
    with join(coordinator, name, wiring.settings.state_dir) as membership:  # its end frees the leases
        for testbed in testbeds:
            _acquire(coordinator, membership, testbed, progress, stop)
            require_allowed(wiring, testbed, besides)  # it may have changed while we waited
        yield


def _acquire(
    coordinator: Coordinator, membership: Membership, testbed: str, progress: Progress, stop: Stop | None
) -> None:
    """Wait until a testbed is leased. Raises InfrastructureError: we count as dead; Interrupted."""
    told = ""
    while True:
        if membership.acquire_testbed(testbed) is not None:
            return
        if membership.is_lost:
            raise membership.error()
        user = lease_holder(coordinator, testbed)
        if user and user != told:
            told = user
            progress(f"waiting for the testbed '{testbed}': {user} uses it")
        if stop is not None and stop():
            raise Interrupted(f"stopped while waiting for the testbed '{testbed}'")
        time.sleep(_POLL_SECONDS)


def lease_holder(coordinator: Coordinator, testbed: str) -> str:
    """Return who has the lease of a testbed, in words; '' where it is free."""
    return _lease_holders(coordinator).get(testbed_resource(testbed), "")


def _lease_holders(coordinator: Coordinator) -> dict[str, str]:
    """Return who has which lease, in words."""
    names = {executor.id: executor.name for executor in coordinator.executors()}
    called = {lease.resource: names.get(lease.executor, lease.executor) for lease in coordinator.leases()}
    return {
        resource: f"'{name}'" if name.startswith(START) else f"the worker '{name}'"
        for resource, name in called.items()
    }


def holders(wiring: Wiring) -> dict[str, str]:
    """Return who has testbeds of the lab now, in words: to measure, to check, or to give them back.

    Of other hosts only those are known that use the same database; of guests nobody.
    """
    from bisector.adapters.machine.physical_hosts import claim_names
    from bisector.adapters.system import machine_locks

    found: dict[str, str] = {}
    if (coordinator := wiring.shared_coordinator) is not None:
        leased = _lease_holders(coordinator)
        names = {testbed_resource(spec.name): spec.name for spec in wiring.lab.testbeds}
        found |= {names[resource]: who for resource, who in leased.items() if resource in names}
    specs = {f"the testbed '{spec.name}'": spec for spec in wiring.lab.testbeds}  # as it is claimed
    for file, (who, what) in machine_locks.holders(wiring.settings.lock_dir, "testbed-").items():
        user, spec = _USER.fullmatch(who), specs.get(what)
        # Another lab may have another machine of that name.
        if user and spec and file in map(machine_locks.file_name, claim_names(spec)):
            found[spec.name] = f"{user['doing']} ({user['process']})"
    return found
