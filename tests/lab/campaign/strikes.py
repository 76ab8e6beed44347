"""What each fault does to an emulated machine, and what ends it."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bisector.adapters.machine.machine_mark import MachineMark, MachineUser
from bisector.adapters.machine.machine_reach import MachineReach
from bisector.errors import MachineInUse, PerfbisectError
from tests.lab.campaign.faults import Fault
from tests.lab.machine import BOOT_SECONDS, Machine

_CUT = 'pkill -KILL -f "^sshd: root"'
"""Ends the connections and not the server. It has to come later: whoever asks loses its own, too."""

_LOCKED_SECONDS = 75.0
"""A write to the state file waits 30 s for another program's; runs are recorded every few seconds."""

_TRIES = 10
"""Of a command on a machine that is just booting."""


@dataclass
class Striker:
    """Strikes, and takes back. violations: what a fault itself found wrong."""

    violations: list[str] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def strike(self, fault: Fault, machine: Machine, perfbisect: int, state: Path) -> None:
        """Do what the fault does; what ends it follows by itself.

        perfbisect: the process id; state: its state file.
        """
        match fault.kind:
            case "perfbisect killed" | "killed in giving back":
                os.kill(perfbisect, signal.SIGKILL)
            case "Ctrl-C":
                os.kill(perfbisect, signal.SIGINT)
            case "state locked":
                self._later(0.0, lambda: _lock(state))
            case "BMC dead" | "BMC dead, powered off":
                machine.bmc.kill()
                if fault.kind != "BMC dead":
                    machine.power_off()
                self._later(fault.seconds, machine.bmc.start)
            case "SSH cut":
                self._later(0.0, lambda: _persist(lambda: machine.later(_CUT)))
            case "network cut":
                machine.cut_network()
                self._later(fault.seconds, lambda: _plug_in(machine))
            case "powered off":
                machine.power_off()
            case "hung":
                machine.hang()
            case "rebooted by somebody":
                self._later(0.0, lambda: _run(machine, "reboot"))
            case "second user":
                self._later(0.0, lambda: self._second_user(machine))
            case "disk full":
                self._later(0.0, lambda: self._fill_disk(machine, fault.seconds))
            case other:
                raise AssertionError(other)

    def wait(self) -> None:
        """Wait until all that ends by itself has ended."""
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def is_over(self) -> bool:
        """Return whether it has."""
        return not any(thread.is_alive() for thread in self._threads)

    def _later(self, seconds: float, action: Callable[[], object]) -> None:
        def act() -> None:
            time.sleep(seconds)
            try:
                action()
            except Exception as error:
                self.violations.append(f"a fault could not be made or taken back: {error!r}")

        self._threads.append(threading.Thread(target=act, daemon=True))
        self._threads[-1].start()

    def _fill_disk(self, machine: Machine, seconds: float) -> None:
        _persist(machine.fill_disk)
        time.sleep(seconds)
        _persist(machine.empty_disk)

    def _second_user(self, machine: Machine) -> None:
        """Somebody logs in and works there; a perfbisect of another host wants the machine, too."""
        other = MachineUser("another-domain", "user=somebody host=elsewhere")
        mark = MachineMark(machine.name, MachineReach(machine.ssh_host, BOOT_SECONDS), other)

        def take() -> None:
            try:
                mark.set(60.0)
            except MachineInUse:
                return
            self.violations.append(f"another host's perfbisect was given {machine.name}")

        _persist(take)
        _run(machine, "dd if=/dev/zero of=/dev/null bs=1M count=2000")


def _run(machine: Machine, command: str) -> None:
    _persist(lambda: machine.run("sh", "-c", f"({command}) >/dev/null 2>&1; true"))


def _persist(action: Callable[[], object]) -> None:
    """Do it as soon as the machine answers."""
    for left in reversed(range(_TRIES)):
        try:
            action()
            return
        except PerfbisectError:
            if left == 0:
                raise
            time.sleep(3.0)


def _lock(state: Path) -> None:
    """Keep perfbisect from writing to its state file, longer than it waits for that."""
    connection = sqlite3.connect(state, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        time.sleep(_LOCKED_SECONDS)
        connection.execute("ROLLBACK")
    finally:
        connection.close()


def _plug_in(machine: Machine) -> None:
    """Mend the network of a machine, if it is on."""
    if machine.is_on():
        machine.mend_network()
