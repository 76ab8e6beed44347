"""Consoles that a program of this machine prints: any command of the lab, and ipmitool's serial over LAN."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence

from bisector.adapters.machine.console.terminal_command import TerminalCommand
from bisector.adapters.machine.power.ipmi_power import check_accepted, ipmitool
from bisector.adapters.system.command import run_command
from bisector.errors import InfrastructureError, PerfbisectError
from bisector.schemas.machine.power import IpmiPowerSettings
from bisector.schemas.masking import mask

_DEACTIVATE_SECONDS = 30.0
"""Timeout of ending a session; ipmitool gives a silent BMC up after 20 s."""

_RETRIES = "2"
"""Of each request in a session. After 15 s of silence ipmitool asks the BMC whether it is there, and ends the
session when it has not answered four times: with 2 retries a BMC that has reset itself is noticed after 40 s,
with ipmitool's own 4 after 100."""

_OPERATIONAL = re.compile(rb"\[SOL Session operational\.[^\]]*\]\r?\n?")


class CommandStream(TerminalCommand):
    """See `ConsoleStream`: a command of the lab."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it. Raises InfrastructureError."""
        super().__init__(command)


class SolStream:
    """See `ConsoleStream`: serial over LAN. A session that somebody left open is ended first."""

    def __init__(self, bmc: IpmiPowerSettings) -> None:
        """Open a session. Raises InfrastructureError with what ipmitool says, RequestError."""
        self._bmc = bmc
        self._command, self._environment = ipmitool(bmc)
        self._deactivate()
        self._terminal = TerminalCommand(
            (*self._command, "-R", _RETRIES, "sol", "activate"), self._environment
        )
        self._said, self._begun = b"", False

    def read(self, timeout: float) -> bytes | None:
        """See `ConsoleStream.read`. Raises InfrastructureError if the session does not begin."""
        data = self._terminal.read(timeout)
        if self._begun or data is None:
            return data
        self._said += data
        if begin := _OPERATIONAL.search(self._said):
            self._begun = True
            return self._said[begin.end() :] or None
        if data == b"":
            lines = mask(self._said.decode(errors="replace"), self._environment.values()).split("\n")
            messages = [line.strip().removeprefix("Error: ") for line in lines if line.strip()]
            raise InfrastructureError(f"ipmitool: {messages[-1] if messages else 'no console'}")
        return None

    def close(self) -> None:
        """See `ConsoleStream.close`. The BMC is told, else it keeps the session."""
        self._terminal.close()
        with contextlib.suppress(PerfbisectError):
            self._deactivate()

    def _deactivate(self) -> None:
        """End any session; a BMC that does not do it, or has none, may still give one.

        Raises PowerRefused: the BMC does not accept the password.
        """
        command = (*self._command, "-v", "sol", "deactivate")
        done = run_command(command, env=self._environment, timeout=_DEACTIVATE_SECONDS, check=False)
        check_accepted(self._bmc, mask(done.output, self._environment.values()))
