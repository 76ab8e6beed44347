"""The power switch and the console of a testbed, by its host variables."""

from __future__ import annotations

from pathlib import Path

from bisector.adapters.machine.console import CommandConsole
from bisector.adapters.machine.machine_parts import Console, Power
from bisector.adapters.machine.power_command import CommandPower
from bisector.schemas.lab import TestbedSpec


def power_of(testbed: TestbedSpec) -> Power | None:
    """Return what switches a testbed on and off, None where the lab names nothing."""
    return CommandPower(testbed.variables.power) if testbed.variables.power.cycle else None


def has_console(testbed: TestbedSpec) -> bool:
    """Return whether the lab names a console."""
    return bool(testbed.variables.console)


def open_console(testbed: TestbedSpec, path: Path) -> Console:
    """Listen to a testbed's console from now on, into a file. Raises InfrastructureError."""
    return CommandConsole(testbed.variables.console, path)
