"""Power by a command of the lab."""

from __future__ import annotations

from bisector.adapters.machine.machine_parts import PowerStatus
from bisector.adapters.system.command import run_command
from bisector.errors import InfrastructureError
from bisector.schemas.machine.testbed_variables import PowerVariables

_POWER_SECONDS = 120.0
"""Timeout of the command that switches power; some management controllers take most of a minute."""


class CommandPower:
    """See `machine_parts.Power`."""

    def __init__(self, variables: PowerVariables) -> None:
        self._variables = variables

    def on(self) -> None:
        """Switch it on."""
        self._run("on", self._variables.on)

    def off(self) -> None:
        """Switch it off."""
        self._run("off", self._variables.off)

    def cycle(self) -> None:
        """Switch it off and on."""
        self._run("cycle", self._variables.cycle)

    def status(self) -> PowerStatus:
        """Return that nobody can say."""
        return "unknown"

    def _run(self, what: str, command: tuple[str, ...]) -> None:
        if not command:
            raise InfrastructureError(f"no command is known to switch power: {what}")
        run_command(command, timeout=_POWER_SECONDS)
