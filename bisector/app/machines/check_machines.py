"""Use case of `perfbisect lab check`: checks every machine of the lab, several at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from typing import TYPE_CHECKING

from bisector.errors import Interrupted, RequestError, nearest
from bisector.model.machines.lab_findings import LabFinding, MachineFindings
from bisector.report.phrases import duration
from bisector.schemas.documents.document import shortened, shown_path

if TYPE_CHECKING:
    from pathlib import Path

    from bisector.adapters.machine.checks.lab_check import Around, MachineCheck
    from bisector.app.wiring import Wiring
    from bisector.ports import Progress

_SIDE_BY_SIDE = 4
"""Machines checked at once. A check mostly waits, but it needs an Ansible process; four is chosen."""

_STOP_SECONDS = 3.0
"""How long an interrupt waits for plays and consoles to end; a silent BMC or SSH server would hold it for a
minute."""

_TOLD_SECONDS = 1.0
"""The shortest remaining time that is shown."""


def check_machines(
    wiring: Wiring, progress: Progress = lambda _: None, names: Sequence[str] | None = None
) -> list[MachineFindings]:
    """Check every machine of the lab, or those that are named; return them in the inventory's order.

    names: of hosts, or with their role, as 'builder here'. progress: told how many machines are done, and
    how long the rest will take. Raises RequestError for an unknown name.
    """
    from bisector.adapters.machine.checks.lab_check import lab_checks

    wanted = list(lab_checks(wiring.lab, around(wiring)))
    if names is not None:
        known = [machine for machine, _ in wanted]
        for name in names:
            if not any(_is_named(machine, [name]) for machine in known):
                raise _no_machine(name, known, wiring.lab.inventory)
        wanted = [row for row in wanted if _is_named(row[0], names)]
    started, done = time.monotonic(), dict[int, MachineFindings]()
    pool = ThreadPoolExecutor(_SIDE_BY_SIDE, "lab check")
    waiting = {pool.submit(_timed, name, check): number for number, (name, check) in enumerate(wanted)}
    try:
        for future in as_completed(waiting):
            done[waiting[future]] = future.result()
            left = len(wanted) - len(done)
            if left:
                rest = left * (time.monotonic() - started) / len(done)
                # A builder on this host answers at once, which says nothing about how long machines take.
                about = f"; about {duration(rest)} left" if rest >= _TOLD_SECONDS else ""
                progress(f"{len(done)} of {len(wanted)} machines{about}")
    except BaseException:
        wiring.stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
        wait(waiting, _STOP_SECONDS)
        raise
    pool.shutdown()
    return [done[number] for number in sorted(done)]


def around(wiring: Wiring) -> Around:
    """Return what checks of this lab use."""
    from bisector.adapters.machine.checks.lab_check import Around

    return Around(wiring.ansible(wiring.stop.is_set), wiring.settings.cache_dir, user_of(wiring))


def user_of(wiring: Wiring) -> Callable[[str], str]:
    """Return a function that names who uses a testbed now, in words; '' where nobody does."""
    from bisector.app.testbeds.machine_marks import marked_by_others
    from bisector.app.testbeds.testbed_use import lease_holder

    one_at_a_time = threading.Lock()

    def find(testbed: str) -> str:
        if (coordinator := wiring.shared_coordinator) is not None:
            holder = lease_holder(coordinator, testbed)
            if holder:
                return holder
        try:
            # Two names may belong to one machine: one thread must not take another for a foreign user.
            with one_at_a_time, wiring.claim_testbed(testbed, lambda _: None, lambda: True):
                return marked_by_others(wiring, testbed)
        except Interrupted:
            return "another perfbisect of this machine"

    return find


def _timed(name: str, check: MachineCheck) -> MachineFindings:
    started = time.monotonic()
    findings: list[LabFinding] = list(check())
    return MachineFindings(name, tuple(findings), time.monotonic() - started)


def _no_machine(name: str, known: Sequence[str], inventory: Path) -> RequestError:
    """Return the refusal of a name that is neither a testbed's nor a builder's."""
    close = nearest(name[:200], [machine.split(" ", 1)[1] for machine in known])
    return RequestError(
        f"the lab has no machine '{shortened(name)}'{close}",
        details=f"machines in {shown_path(inventory)}: {', '.join(known[:50])}",
        cure="'perfbisect lab list' shows them; --lab FILE names another inventory",
    )


def _is_named(machine: str, names: Sequence[str]) -> bool:
    return machine in names or machine.split(" ", 1)[1] in names
