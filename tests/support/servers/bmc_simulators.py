"""BMCs of machines that are a file: OpenIPMI's simulator, and sushy-tools' Redfish emulator over TLS."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.servers.free_port import free_port
from tests.support.servers.ipmi_config import CONTROLLER, USER, lan_config

_SWITCH = """\
#!/bin/sh
# 'get power' or 'set power 0', as ipmi_sim asks; each start is a line of the file 'starts'
cd "${0%/*}" || exit 1
case "$1 $2 $3" in
"get power "*) echo "power:$(cat power)" ;;
"set power 1") [ "$(cat power)" = 1 ] || echo start >> starts; echo 1 > power ;;
"set power 0") echo 0 > power ;;
*) exit 1 ;;
esac
"""

_REDFISH = """\
import random, sys
random.randint = lambda low, high: 1  # seconds until a switched machine is on or off
from sushy_tools.emulator.main import main
sys.exit(main())
"""

_CERTIFICATE = [
    "openssl",
    "req",
    "-x509",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-keyout",
    "key.pem",
    "-out",
    "cert.pem",
    "-days",
    "2",
]


@dataclass
class Simulator:
    """A BMC that runs. variables: of `perfbisect_power` in an inventory."""

    command: list[str]
    variables: dict[str, Any]
    folder: Path
    _process: subprocess.Popen[bytes] | None = None

    def starts(self) -> int:
        """Return how often its machine was switched on."""
        return len((self.folder / "starts").read_text().splitlines())

    def start(self) -> None:
        """Start it, or start it again with what it had."""
        with (self.folder / "simulator.log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@contextlib.contextmanager
def ipmi_simulator(folder: Path, password: str, serial: int = 1) -> Iterator[Simulator]:
    """Run a BMC over IPMI. serial: the TCP port with its machine's serial console."""
    port = free_port()
    files = {
        "lan.conf": lan_config("box", port, f"{folder}/switch", password, serial),
        "box.emu": CONTROLLER,
        "switch": _SWITCH,
        "power": "0\n",
        "starts": "",
    }
    with _running(
        ["ipmi_sim", "-c", "lan.conf", "-f", "box.emu", "-s", ".", "-n"], folder, files, password
    ) as simulator:
        simulator.variables |= {"kind": "ipmi", "address": "127.0.0.1", "port": port, "user": USER}
        yield simulator


@contextlib.contextmanager
def redfish_emulator(folder: Path, password: str) -> Iterator[Simulator]:
    """Run a BMC over Redfish, with a certificate of its own."""
    import bcrypt

    port = free_port()
    hashed = bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()
    settings = (
        f"SUSHY_EMULATOR_AUTH_FILE = '{folder}/users'\nSUSHY_EMULATOR_STATE_DIR = '{folder}'\n"
        f"SUSHY_EMULATOR_SSL_CERT = '{folder}/cert.pem'\nSUSHY_EMULATOR_SSL_KEY = '{folder}/key.pem'\n"
    )
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [*_CERTIFICATE, "-subj", "/CN=bmc", "-addext", "subjectAltName=IP:127.0.0.1"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    files = {"emulator.conf": settings, "users": f"lab:{hashed}\n", "emulator.py": _REDFISH}
    command = [sys.executable, "emulator.py", "--fake", "--config", "emulator.conf", "-i", "127.0.0.1"]
    with _running([*command, "-p", str(port)], folder, files, password) as simulator:
        simulator.variables |= {"kind": "redfish", "url": f"https://127.0.0.1:{port}", "user": "lab"}
        simulator.variables["certificate"] = str(folder / "cert.pem")
        _wait_for_port(port)
        yield simulator


@contextlib.contextmanager
def _running(command: list[str], folder: Path, files: dict[str, str], password: str) -> Iterator[Simulator]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {**files, "password": f"{password}\n"}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o700 if name == "switch" else 0o600)
    simulator = Simulator(command, {"password_file": str(folder / "password")}, folder)
    simulator.start()
    try:
        yield simulator
    finally:
        simulator.kill()


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            return
