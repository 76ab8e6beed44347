"""A BMC that speaks Redfish over TLS: sushy-tools, in front of an emulated machine."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import bcrypt
import trustme

from tests.lab.box import Box, Inmate
from tests.support.servers.free_port import free_port, is_open
from tests.support.servers.ipmi_config import USER

_SERVER = Path(__file__).parent / "redfish_server.py"
_START_SECONDS = 60.0
"""Flask and libvirt's driver are imported: 2 s of CPU."""


@dataclass
class RedfishBmc:
    """Use `start` and `kill`; the machine goes on without its BMC, as a real one does."""

    box: Box
    folder: Path
    password: str
    port: int = 0
    _process: Inmate | None = None

    @property
    def certificate(self) -> Path:
        return self.folder / "bmc" / "ca.pem"

    def start(self) -> None:
        """Start the server, or start it again on the port that it had, and wait until it listens."""
        if not self.port:
            self.port = free_port()
            self._write_secrets()
        self._process = self.box.start(
            [sys.executable, _SERVER, self.folder, str(self.port)], self.folder / "bmc.log"
        )
        deadline = time.monotonic() + _START_SECONDS
        while not is_open(self.port):
            if time.monotonic() > deadline or not self._process.is_running():
                raise TimeoutError((self.folder / "bmc.log").read_text())
            time.sleep(0.1)

    def is_running(self) -> bool:
        """Return whether it is there to be asked."""
        return self._process is not None and self._process.is_running()

    def kill(self) -> None:
        """End the server at once."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _write_secrets(self) -> None:
        own = self.folder / "bmc"
        own.mkdir(mode=0o700)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(self.certificate))
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(
            str(own / "server.pem")
        )
        digest = bcrypt.hashpw(self.password.encode(), bcrypt.gensalt(rounds=4)).decode()
        (own / "users").write_text(f"{USER}:{digest}\n")
