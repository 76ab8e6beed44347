"""An emulated machine with its own disk, boot loader, network, console and BMC, and what befalls it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bisector.adapters.machine.boot_watch import wait_for_answer
from bisector.adapters.machine.machine_reach import MachineReach
from bisector.adapters.system.ssh import SSH
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.errors import PerfbisectError
from tests.lab.box import Box
from tests.lab.disk_image import BaseImage
from tests.lab.ipmi_bmc import IpmiBmc
from tests.lab.machine_design import MAC, Design, qemu_command
from tests.lab.redfish_bmc import RedfishBmc
from tests.support.servers.free_port import free_port
from tests.support.servers.ipmi_config import USER

BOOT_SECONDS = 300.0
"""Until SSH answers: 7 to 30 s of CPU for an emulated boot, on a host that six others share."""

_QUICK_BOOT_SECONDS = 90.0
_BOOT_FACTOR = 8
"""A boot may take so many times as long as the first: other machines and a compiler take their turns."""

_SWITCH = Path(__file__).parent / "power_switch.py"


@dataclass
class Machine:
    """One machine; `Machines` makes them. folder: of disk, logs and sockets; cpu: of this host, on which it
    runs; boot_seconds: of a boot."""

    name: str
    folder: Path
    base: BaseImage
    box: Box
    design: Design
    cpu: int
    ssh_port: int = field(default_factory=free_port)
    serial_port: int = field(default_factory=free_port)
    boot_seconds: float = BOOT_SECONDS

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.password = secrets.token_hex(8)  # of 16 characters: ipmi_sim takes no more
        (self.folder / "password").write_text(f"{self.password}\n")
        (self.folder / "password").chmod(0o600)
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.ssh_port} {self.base.host_key}\n")
        command = qemu_command(self.design, self.name, self.folder, self.ssh_port, self.serial_port, self.cpu)
        (self.folder / "qemu.args").write_text("".join(f"{word}\n" for word in command))
        self.bmc = (
            IpmiBmc(self.box, self.folder, self.password, self.serial_port if self._has_sol() else None)
            if self.design.bmc == "ipmi"
            else RedfishBmc(self.box, self.folder, self.password)
        )
        self.renew_disk()

    def _has_sol(self) -> bool:
        return self.design.console == "sol"

    # --- as it is meant to be used ---

    def renew_disk(self) -> None:
        """Give it a fresh disk; it must be off."""
        shutil.copyfile(self.base.disk, self.folder / "disk.img.new")
        (self.folder / "disk.img.new").rename(self.folder / "disk.img")

    @property
    def ssh_host(self) -> SSHHost:
        return SSHHost("127.0.0.1", self.ssh_port, "root", self.base.key, self.folder / "known_hosts")

    def host_variables(self) -> dict[str, Any]:
        """Return its variables in an inventory."""
        variables: dict[str, Any] = {
            "ansible_host": "127.0.0.1",
            "ansible_port": self.ssh_port,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self.base.key),
            "perfbisect_kind": "ssh",
            "perfbisect_host": self.name,
            "perfbisect_known_hosts": str(self.folder / "known_hosts"),
            "perfbisect_boot_method": self.design.method,
            "perfbisect_boot_timeout": round(self.boot_timeout),
            "perfbisect_power": self._power_variable(),
        }
        if self.design.console == "sol":
            variables["perfbisect_console"] = {"kind": "sol"}
        elif self.design.console == "tcp":
            where = {"address": "127.0.0.1", "port": self.serial_port}
            variables["perfbisect_console"] = {"kind": "tcp", **where}
        if self.design.method == "pxe":
            served = {"folder": str(self.folder / "tftp"), "url": "tftp://10.0.2.2", "mac": MAC}
            variables["perfbisect_netboot"] = served
        return variables

    def _power_variable(self) -> dict[str, Any] | list[dict[str, Any]]:
        account = {"user": USER, "password_file": str(self.folder / "password")}
        bmc: dict[str, Any]
        if isinstance(self.bmc, IpmiBmc):
            bmc = {"kind": "ipmi", "address": "127.0.0.1", "port": self.bmc.port, **account}
        else:
            url, certificate = f"https://127.0.0.1:{self.bmc.port}", str(self.bmc.certificate)
            bmc = {"kind": "redfish", "url": url, "certificate": certificate, **account}
        if self.design.switch == "BMC":
            return bmc
        # 'env -i': perfbisect ends what a command of its own has started, and a real PDU starts no machine.
        clean = [*self.box.enter, "--", "env", "-i", f"PATH={os.environ['PATH']}"]
        switch = [*clean, sys.executable, "-IS", str(_SWITCH), str(self.folder)]
        if self.design.switch == "command":
            return {"cycle": [*switch, "set", "reset"]}
        on, off = ([*switch, "set", "power", value] for value in "10")
        return [bmc, {"on": on, "off": off, "status": [*switch, "get", "words"]}]

    def put_back(self) -> None:
        """Bring it to a known state, whatever befell it: BMC, network, its own kernel, no files of ours, and
        nothing of kernels that crashed.

        A machine that answers and runs its default kernel keeps its disk; any other gets a fresh one.
        """
        if not self.bmc.is_running():
            self.bmc.start()
        if self.is_on():
            self.unhang()
            self.mend_network()
            with contextlib.suppress(PerfbisectError):
                if self.kernel() == self.base.kernel and "perfbisect" not in self.run("ls", "/boot", "/var"):
                    self._forget_crashes()
                    return
            self.power_off()
        self.renew_disk()
        started = time.monotonic()
        self.power_on()
        self.wait_for_ssh()
        self.boot_seconds = time.monotonic() - started
        self._forget_crashes()

    def _forget_crashes(self) -> None:
        """Remove what kernels left when they crashed; the firmware's memory outlives the disk."""
        self.run("sh", "-c", "rm -rf /sys/fs/pstore/* /var/lib/systemd/pstore/*")

    @property
    def boot_timeout(self) -> float:
        """How long to wait for its boots on this host, after one that was measured."""
        return min(max(self.boot_seconds * _BOOT_FACTOR, _QUICK_BOOT_SECONDS), BOOT_SECONDS)

    def start(self) -> None:
        """Start BMC and machine."""
        self.bmc.start()
        self.power_on()

    def wait_for_ssh(self, timeout: float = BOOT_SECONDS, other_than: str = "") -> str:
        """Wait until it answers from another boot than this; return the boot's id. Raises TimeoutError.

        A connection that kexec cut off stays silent: the question ends by its own timeout and is asked again.
        """
        reach = MachineReach(self.ssh_host, timeout)
        answer = wait_for_answer(reach, timeout, lambda one: one.boot_id != other_than)
        if answer is None:
            raise TimeoutError(f"{self.name} did not answer in {timeout:.0f} s:\n{self.console()[-3000:]}")
        return answer.boot_id

    def run(self, *command: str, timeout: float = 60.0) -> str:
        """Run a command on it over SSH and return its output. Raises SSHRefused."""
        with SSH(self.ssh_host, timeout=10.0) as ssh:
            return ssh.run(command, timeout=timeout).output

    def later(self, command: str) -> None:
        """Run a shell command on it a second from now, when this connection has ended."""
        self.run("sh", "-c", f"nohup setsid sh -c 'sleep 1; {command}' >/dev/null 2>&1 </dev/null &")

    def kernel(self) -> str:
        """Return the release of the kernel that it runs now."""
        return self.run("uname", "-r").strip()

    def console(self) -> str:
        """Return all that its serial port has said, as seen from behind its back."""
        path = self.folder / "serial.log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def cpu_seconds(self) -> float:
        """Return the CPU time that its QEMU has taken since it was switched on."""
        stat = Path(f"/proc/{self._outer_pid()}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    # --- behind its back ---

    def power_on(self) -> None:
        """Switch it on without the BMC."""
        self._switch("set", "power", "1")

    def power_off(self) -> None:
        """Pull the plug."""
        self._switch("set", "power", "0")

    def is_on(self) -> bool:
        """Return whether it has power."""
        return self._switch("get", "power").strip() == "power:1"

    def hang(self) -> None:
        """Stop it in its tracks: it has power and does nothing."""
        self._switch("set", "signal", str(int(signal.SIGSTOP)))

    def unhang(self) -> None:
        """Let it go on."""
        self._switch("set", "signal", str(int(signal.SIGCONT)))

    def cut_network(self) -> None:
        """Pull its network cable; connections that are open hear nothing of it."""
        self._switch("set", "link", "0")

    def mend_network(self) -> None:
        """Plug it in again."""
        self._switch("set", "link", "1")

    def fill_disk(self) -> None:
        """Have somebody else's file take all of its disk but 100 kB."""
        self.run(
            *("sh", "-c"),
            "fallocate -l $(($(stat -f -c '%a * %S' /) - 100000)) /var/filler; df /",
            timeout=120,
        )

    def empty_disk(self) -> None:
        """Remove that file."""
        self.run("rm", "-f", "/var/filler")

    def lose_disk(self) -> None:
        """Have its disk fail for good: each access is an error, and there is nothing to boot from."""
        self._switch("set", "disk", "0")
        size = (self.folder / "disk.img").stat().st_size
        with (self.folder / "disk.img.new").open("wb") as file:
            file.truncate(size)
        (self.folder / "disk.img.new").rename(self.folder / "disk.img")

    def second_user(self) -> SSH:
        """Log somebody else in; close it to log out."""
        return SSH(self.ssh_host, timeout=30.0)

    def _switch(self, *request: str) -> str:
        return self.box.run([sys.executable, "-IS", _SWITCH, self.folder, *request])

    def _outer_pid(self) -> int:
        """Return QEMU's process id, as this process sees it."""
        wanted = f"{self.folder}/disk.img".encode()
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                command = path.read_bytes()
            except OSError:
                continue
            if command.startswith(b"qemu-system") and wanted in command:
                return int(path.parent.name)
        raise ProcessLookupError(f"{self.name} is off")
