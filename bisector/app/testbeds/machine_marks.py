"""Marks on machines over SSH, read and set outside a bisection, against hosts without a common database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from bisector.errors import InfrastructureError, MachineInUse, PerfbisectError

if TYPE_CHECKING:
    from bisector.adapters.machine.machine_mark import MachineMark
    from bisector.app.wiring import Wiring
    from bisector.ports import Progress


@contextmanager
def marked(wiring: Wiring, testbed: str, seconds: float) -> Iterator[None]:
    """Mark a machine over SSH as used, for hosts that share no database; at most so many seconds.

    A machine that does not answer has none; whoever looks at it says so. Raises MachineInUse.
    """
    mark = None
    try:
        mark = _our_mark(wiring, testbed)
        if mark is not None:
            mark.set(seconds)
    except MachineInUse:
        raise
    except PerfbisectError:
        mark = None
    try:
        yield
    finally:
        if mark is not None:
            with suppress(InfrastructureError):  # it ends by itself
                mark.release()


def marked_by_others(wiring: Wiring, testbed: str) -> str:
    """Return which perfbisect of another host, with another database, uses a machine; '' for none.

    '' also where the machine does not answer, or the inventory does not say how to reach it.
    """
    with suppress(PerfbisectError):
        mark = _our_mark(wiring, testbed)
        return "" if mark is None else mark.holder()
    return ""


def require_unmarked(wiring: Wiring, testbed: str, progress: Progress) -> None:
    """Raise MachineInUse where another host's perfbisect uses a machine; warn where that is unknown."""
    try:
        mark = _our_mark(wiring, testbed)
        if mark is not None:
            mark.require_free()
    except MachineInUse:
        raise
    except PerfbisectError as error:
        progress(f"'{testbed}' cannot say whether another host's perfbisect uses it: {error.message}")


def _our_mark(wiring: Wiring, testbed: str) -> MachineMark | None:
    """Return our mark on a testbed; None for one that other hosts cannot use. Raises RequestError."""
    spec = wiring.lab.testbed(testbed)
    if spec.variables.kind != "ssh":
        return None
    from bisector.adapters.machine.machine_mark import MachineMark, machine_user
    from bisector.adapters.machine.machine_reach import MachineReach, ssh_host

    us = machine_user(wiring.settings.database, wiring.settings.lock_dir, wiring.user())
    return MachineMark(testbed, MachineReach(ssh_host(spec), spec.variables.boot_timeout), us)
