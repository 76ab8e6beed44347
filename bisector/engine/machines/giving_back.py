"""Gives machines back when a bisection leaves them, and takes those that have failed out of use."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from bisector.engine.events import EventSender, OnEvent
from bisector.engine.journal import Journal
from bisector.engine.membership import START, Membership, join
from bisector.engine.services import Services
from bisector.errors import (
    FirmwareChanged,
    InfrastructureError,
    Interrupted,
    MachineInUse,
    NoKernelRan,
    OtherOwnKernel,
)
from bisector.model.leases import HEARTBEAT_TTL_SECONDS
from bisector.model.records import SetAside
from bisector.model.state import Costs

_LEASE_SECONDS = 2 * HEARTBEAT_TTL_SECONDS
"""How long to wait for the lease of a killed process: it counts as dead after one TTL of silence, and this
process may only declare it dead once it has run for one TTL itself."""
_ASK_SECONDS = 1.0
"""How often to ask for that lease."""

_NOT_ITS_OWN = MachineInUse, FirmwareChanged, NoKernelRan
"""Failures that say nothing against the machine: it is in use, was updated, or the kernel may be at fault."""


def give_back(
    services: Services, events: EventSender, testbed: str, stop: Callable[[], bool] = lambda: False
) -> None:
    """Have a machine run its own kernel, with nothing of ours. Problems are reported; nothing is raised.

    A machine that is not given back is suspect: nobody measures on it before somebody has looked. stop:
    whether it is another process's by now, and left to that.
    """
    try:
        services.testbeds[testbed].give_back(lambda text: events.send("note", text, testbed=testbed), stop)
    except Interrupted:
        pass
    except OtherOwnKernel as error:  # still a kernel of its own, perhaps upgraded: others may use it
        events.send("trouble", f"{error.message}; {error.cure}", testbed=testbed)
    except InfrastructureError as error:
        events.send("trouble", error.message, testbed=testbed)
        services.suspect(testbed, error.message)


def give_back_left(bisection: str, services: Services, on_event: OnEvent, stop: threading.Event) -> None:
    """Give back the machines that a killed process left behind, of a bisection that has ended.

    Machines in use are left to their users. Failures are sent as events. stop: set to wait for no lease any
    more. Raises Interrupted at Ctrl-C.
    """
    events = EventSender(on_event, Costs)
    for testbed in services.testbeds:
        try:
            if services.left(testbed):
                _give_back_left(bisection, services, events, testbed, stop)
        except InfrastructureError as error:  # the search has its answer, which this must not spoil
            events.send("trouble", error.message, testbed=testbed)


def _give_back_left(
    bisection: str, services: Services, events: EventSender, testbed: str, stop: threading.Event
) -> None:
    with naming_what_is_left(lambda: [testbed], bisection), _held(services, testbed, stop) as why_not:
        if not why_not:
            give_back(services, events, testbed)
            return
        text = (
            f"'{testbed}' was left behind by a perfbisect that was killed, and is not given back: {why_not}"
        )
        events.send("trouble", f"{text}; later: perfbisect resume {bisection}", testbed=testbed)


@contextmanager
def _held(services: Services, testbed: str, stop: threading.Event) -> Iterator[str]:
    """Hold a testbed against everybody else, unless somebody has it; give why it cannot be held, or ''."""
    why_not = services.why_not(testbed) or ""
    with ExitStack() as held:
        if not why_not and services.coordinator is not None:
            name = f"{START}{socket.gethostname()}:{os.getpid()}"
            membership = held.enter_context(join(services.coordinator, name, services.state_dir))
            why_not = "" if _lease(membership, testbed, stop) else f"{membership.user_of(testbed)} has it"
        if not why_not:
            try:
                held.enter_context(services.claim(testbed, lambda _: None, lambda: True))
            except Interrupted:  # its `stop` is always true, so it raises where it would wait
                why_not = "another perfbisect of this machine has it"
        yield why_not


def _lease(membership: Membership, testbed: str, stop: threading.Event) -> bool:
    """Return whether the testbed is leased until the membership ends."""
    until = time.monotonic() + _LEASE_SECONDS
    while membership.acquire_testbed(testbed) is None:
        if time.monotonic() > until or membership.is_lost or stop.wait(_ASK_SECONDS):
            return False
    return True


def quarantine(services: Services, testbed: str, failure: InfrastructureError) -> None:
    """Mark a machine that has failed too often as suspect, unless the failure is no fault of its own."""
    if services.testbeds[testbed].has_own_kernel and not isinstance(failure, _NOT_ITS_OWN):
        services.suspect(testbed, failure.message)


def set_aside(
    services: Services, journal: Journal, events: EventSender, testbed: str, failure: str, left: Sequence[str]
) -> None:
    """Record and report that the search goes on without a testbed. failure: why; left: the others."""
    journal.record(SetAside(testbed, failure, services.clock.now()))
    events.send(
        "trouble",
        f"the testbed '{testbed}' is set aside until 'perfbisect resume'; "
        f"the search goes on with {', '.join(left)}",
        testbed=testbed,
    )


@contextmanager
def naming_what_is_left(machines: Callable[[], Sequence[str]], bisection: str = "") -> Iterator[None]:
    """Have another Ctrl-C say what is left where, with a user who does not wait until it is given back.

    machines: those that are not given back yet; bisection: the id of one whose 'resume' gives them back, ''
    for none. Raises Interrupted then.
    """
    try:
        yield
    except KeyboardInterrupt:
        left = machines()
        if not left:
            raise
        raise _not_given_back(left, bisection) from None


def _not_given_back(machines: Sequence[str], bisection: str) -> Interrupted:
    cure = (
        f"'perfbisect resume {bisection}', or whoever uses it next," if bisection else "whoever uses it next"
    )
    by_hand = "; ".join(f"'perfbisect lab power {machine} cycle'" for machine in machines)
    return Interrupted(
        f"ended at once: {', '.join(machines)} {'is' if len(machines) == 1 else 'are'} not given back",
        details="a kernel under test may still run there, the workload be there, the power be off",
        cure=f"{cure} brings it back; by hand: {by_hand}",
    )
