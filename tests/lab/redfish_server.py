"""`redfish_server.py FOLDER PORT`: sushy-tools' Redfish controller, in front of one emulated machine.

sushy-tools' own drivers switch domains of libvirt, servers of OpenStack, or nothing; this one switches by
`power_switch`. A boot override holds for one boot, as the standard's 'Once' says; while there is a file
`boot.kept` in FOLDER it holds for all, as with BMCs that take 'Once' for 'Continuous'.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from sushy_tools import error
from sushy_tools.emulator import main as emulator
from sushy_tools.emulator.resources.systems.fakedriver import FakeDriver

_SWITCH = Path(__file__).parent / "power_switch.py"
_RECONNECT_SECONDS = 0.2
_FIRMWARE_SECONDS = 4.0
"""A reboot of Linux resets the machine more than once; then the firmware has read what it boots from."""

_UUID = "70657266-6269-7365-6374-0000000000b3"


class MachineDriver(FakeDriver):  # type: ignore[misc]  # sushy-tools has no annotations
    """The fake driver's system, with the power and the boot device of a real QEMU."""

    folder: Path
    _turn = threading.Lock()

    def get_power_state(self, identity: str) -> str:
        self._get(identity)
        return "On" if self.switch("get", "power").strip() == "power:1" else "Off"

    def set_power_state(self, identity: str, state: str) -> None:
        self._get(identity)
        match state:
            case "On" | "ForceOn":
                self.switch("set", "power", "1")
            case "ForceOff" | "GracefulShutdown":
                self.switch("set", "power", "0")
            case "ForceRestart" | "GracefulRestart":
                self.switch("set", "reset", "1")
            case _:
                raise error.NotSupportedError(f"this machine has no '{state}'")

    def get_boot_device(self, identity: str) -> str:
        self._get(identity)
        return "Pxe" if self.switch("get", "boot").strip() == "boot:pxe" else "Hdd"

    def set_boot_device(self, identity: str, boot_source: str) -> None:
        self._get(identity)
        self.switch("set", "boot", "pxe" if boot_source == "Pxe" else "default")

    @classmethod
    def switch(cls, *request: str) -> str:
        """Ask the machine's switch, one request at a time."""
        with cls._turn:
            return subprocess.run(
                [sys.executable, "-IS", _SWITCH, cls.folder, *request],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            ).stdout


def forget_boot_device(folder: Path) -> None:
    """Have a boot from the network followed by one from the disk; QEMU tells of each reset."""
    while True:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as line:
            line.connect(str(folder / "qmp-events"))
            line.sendall(b'{"execute": "qmp_capabilities"}')
            for reply in map(json.loads, line.makefile()):
                if reply.get("event") != "RESET" or (folder / "boot.kept").exists():
                    continue
                if (folder / "boot.once").exists():
                    time.sleep(_FIRMWARE_SECONDS)
                    MachineDriver.switch("set", "boot", "default")
        time.sleep(_RECONNECT_SECONDS)


def main(folder: Path, port: int) -> None:
    """Serve until killed. FOLDER/bmc holds certificate, key and the file of users."""
    own = folder / "bmc"
    MachineDriver.folder = folder
    system: dict[str, Any] = {"uuid": _UUID, "name": folder.name, "power_state": "Off", "nics": []}
    emulator.fakedriver.FakeDriver = MachineDriver
    emulator.app.configure(
        extra_config={
            "SUSHY_EMULATOR_FAKE_DRIVER": True,
            "SUSHY_EMULATOR_FAKE_SYSTEMS": [system],
            "SUSHY_EMULATOR_STATE_DIR": str(own),
            "SUSHY_EMULATOR_AUTH_FILE": str(own / "users"),
            "SUSHY_EMULATOR_FEATURE_SET": "minimum",
        }
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own / "server.pem")
    threading.Thread(target=forget_boot_device, args=(folder,), daemon=True).start()
    emulator.app.run(host="127.0.0.1", port=port, ssl_context=context, threaded=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
