"""Gives machines back when a bisection leaves them, and takes those that have failed out of use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from bisector.engine.events import EventSender
from bisector.engine.services import Services
from bisector.errors import FirmwareChanged, InfrastructureError, Interrupted, MachineInUse, NoKernelRan

_NOT_ITS_OWN = MachineInUse, FirmwareChanged, NoKernelRan
"""Failures of a machine that is well, or that the kernel may have caused."""


def give_back(
    services: Services, events: EventSender, testbed: str, stop: Callable[[], bool] = lambda: False
) -> None:
    """Have a machine run its own kernel, with nothing of ours. What goes wrong is told; nothing is raised.

    A machine that is not given back is suspect: nobody measures on it before somebody has looked. stop:
    whether it is another process's by now, and left to that.
    """
    try:
        services.testbeds[testbed].give_back(lambda text: events.send("note", text, testbed=testbed), stop)
    except Interrupted:
        pass
    except InfrastructureError as error:
        events.send("trouble", error.message, testbed=testbed)
        services.suspect(testbed, error.message)


def quarantine(services: Services, testbed: str, failure: InfrastructureError) -> None:
    """Make a machine suspect that has failed as often as a trial is tried, by a failure that is its own."""
    if services.testbeds[testbed].has_own_kernel and not isinstance(failure, _NOT_ITS_OWN):
        services.suspect(testbed, failure.message)


@contextmanager
def naming_what_is_left(machines: Callable[[], Sequence[str]], bisection: str = "") -> Iterator[None]:
    """Have another Ctrl-C say what is left where, with a user who does not wait until it is given back.

    machines: those that are not given back yet; bisection: the id of one that 'resume' goes on with, '' for
    none. Raises Interrupted then.
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
