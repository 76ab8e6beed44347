"""Power by commands of the lab: a PDU's script, a fence agent, labgrid, anything that switches."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bisector.adapters.machine.machine_parts import PowerStatus
from bisector.adapters.machine.power.power_stage import PowerRefused
from bisector.adapters.system.command import CompletedCommand, run_command
from bisector.errors import InfrastructureError
from bisector.schemas.machine.power import CommandPowerSettings as Variables
from bisector.schemas.masking import mask, mask_command, secrets_of

_SECONDS = 120.0
"""Timeout of a command; some management controllers and PDUs take most of a minute."""

_OFF_CODE = 2
"""Of a fence agent's `status` where it is off: 0 is on, 1 no answer (ClusterLabs, FenceAgentAPI). Programs
in Python end so for wrong arguments, and then name both states."""

_STATE = re.compile(r"\b(on|off)\b(?!-)")
"""In lower case. A PDU may be off-line."""


class CommandPower:
    """See `Power`. A state is asked by the command `status`, whose output's last 'on' or 'off' counts."""

    def __init__(self, variables: Variables) -> None:
        self._commands = variables
        first = next(iter(variables.cycle or variables.on or variables.off or variables.status), "")
        self.name = f"command {first}".strip()

    def on(self) -> None:
        """Run the command `on`. See `Power.on`."""
        self._switch("on", self._commands.on)

    def off(self) -> None:
        """Run the command `off`. See `Power.off`."""
        self._switch("off", self._commands.off)

    def cycle(self) -> None:
        """Run the command `cycle`. See `Power.cycle`."""
        self._switch("cycle", self._commands.cycle)

    def status(self) -> PowerStatus:
        """Run the command `status`. One that fails tells no state: a banner of SSH has us 'log off', too."""
        if not self._commands.status:
            return "unknown"
        done = run_command(self._commands.status, timeout=_SECONDS, check=False)
        lines = [_STATE.findall(line.lower()) for line in done.output.splitlines()]
        words: list[str] = next((words for words in reversed(lines) if words), [])
        if words and done.code == 0:
            return "on" if words[-1] == "on" else "off"
        if done.code == _OFF_CODE and set(words) == {"off"}:
            return "off"
        what = f"failed with code {done.code}" if done.code else "says neither 'on' nor 'off'"
        cure = f"where it knows the state, have it end with 0, or with {_OFF_CODE} for 'off'"
        raise InfrastructureError(
            f"'{done.command[0]}' {what}",
            details=_shown(self._commands.status, done),
            cure=cure if words else "",
        )

    def _switch(self, action: str, command: Sequence[str]) -> None:
        if not command:
            raise PowerRefused(f"there is no command '{action}'")
        run_command(command, timeout=_SECONDS)


def _shown(command: Sequence[str], done: CompletedCommand) -> str:
    return f"{' '.join(mask_command(command))}\n{mask(done.output[-4000:], secrets_of(command))}"
