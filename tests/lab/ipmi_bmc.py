"""A BMC that speaks IPMI: OpenIPMI's simulator, which switches a machine and has its serial port."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tests.lab.box import Box, Inmate
from tests.support.servers.free_port import free_port
from tests.support.servers.ipmi_config import CONTROLLER, lan_config

_SWITCH = Path(__file__).parent / "power_switch.py"


@dataclass
class IpmiBmc:
    """Use `start` and `kill`; the machine goes on without its BMC, as a real one does."""

    box: Box
    folder: Path
    password: str
    serial_port: int | None
    port: int = 0
    _process: Inmate | None = None

    def start(self) -> None:
        """Start the simulator, or start it again on the port that it had."""
        self.port = self.port or free_port()
        own = self.folder / "bmc"
        own.mkdir(exist_ok=True)
        switch = f"{sys.executable} -IS {_SWITCH} {self.folder} of-bmc"
        (own / "lan.conf").write_text(
            lan_config(self.folder.name, self.port, switch, self.password, self.serial_port)
        )
        (own / "controller.emu").write_text(CONTROLLER)
        for file in (own / "lan.conf", own / "controller.emu"):
            file.chmod(0o600)
        self._process = self.box.start(
            ["ipmi_sim", "-c", own / "lan.conf", "-f", own / "controller.emu", "-s", own, "-n"],
            self.folder / "bmc.log",
            cwd=own,
        )

    def is_running(self) -> bool:
        """Return whether it is there to be asked."""
        return self._process is not None and self._process.is_running()

    def idle(self, pretends: bool) -> None:
        """Have it say that it switches the machine, and do nothing, from now on or no longer."""
        state = self.folder / "bmc.idle"
        state.write_text("1") if pretends else state.unlink()

    def kill(self) -> None:
        """End the simulator at once."""
        if self._process is not None:
            self._process.kill()
            self._process = None
