"""A BMC that speaks IPMI: OpenIPMI's simulator, which switches a machine and has its serial port."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tests.lab.box import Box, Inmate
from tests.support.servers.free_port import free_port

USER = "lab"

_SWITCH = Path(__file__).parent / "power_switch.py"
_LAN = """\
name "{name}"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_callback md5
    allowed_auths_user md5
    allowed_auths_operator md5
    allowed_auths_admin md5
    guid a123456789abcdefa123456789abcdef
  endlan
{sol}  chassis_control "{python} -IS {switch} {folder}"
  user 1 false "" "" user 10 md5
  user 2 true "{user}" "{password}" admin 10 md5
"""
_CONTROLLER = """\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
"""


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
        (own / "lan.conf").write_text(
            _LAN.format(
                name=self.folder.name,
                port=self.port,
                sol=f'  sol "tcp:127.0.0.1:{self.serial_port}" 115200\n' if self.serial_port else "",
                python=sys.executable,
                switch=_SWITCH,
                folder=self.folder,
                user=USER,
                password=self.password,
            )
        )
        (own / "controller.emu").write_text(_CONTROLLER)
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

    def kill(self) -> None:
        """End the simulator at once."""
        if self._process is not None:
            self._process.kill()
            self._process = None
