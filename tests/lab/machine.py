"""An emulated machine with its own disk, boot loader, network, console and BMC, and what befalls it."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bisector.adapters.system.channel import LineClosed
from bisector.adapters.system.ssh import SSH, SSHRefused
from bisector.adapters.system.ssh_endpoint import SSHHost
from tests.lab.box import Box
from tests.lab.disk_image import BaseImage
from tests.lab.ipmi_bmc import USER, IpmiBmc
from tests.support.servers.free_port import free_port

BOOT_SECONDS = 240.0
"""Until SSH answers: 15 to 18 s of CPU for an emulated boot, on a host that six others share."""

_SWITCH = Path(__file__).parent / "power_switch.py"
_MEMORY_MB = 512


@dataclass
class Machine:
    """One machine; `Machines` makes them. folder: its disk, logs and sockets."""

    name: str
    folder: Path
    base: BaseImage
    box: Box
    method: str = "kexec"
    ssh_port: int = field(default_factory=free_port)
    serial_port: int = field(default_factory=free_port)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.password = secrets.token_hex(8)  # of 16 characters: IPMI 1.5 takes no more
        (self.folder / "password").write_text(f"{self.password}\n")
        (self.folder / "password").chmod(0o600)
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.ssh_port} {self.base.host_key}\n")
        (self.folder / "qemu.args").write_text("".join(f"{word}\n" for word in self._qemu()))
        self.bmc = IpmiBmc(self.box, self.folder, self.password, self.serial_port)
        self.renew_disk()

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
        ipmitool = ["ipmitool", "-I", "lanplus", "-C", "3", "-H", "127.0.0.1", "-p", str(self.bmc.port)]
        ipmitool += ["-U", USER, "-f", str(self.folder / "password")]
        return {
            "ansible_host": "127.0.0.1",
            "ansible_port": self.ssh_port,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self.base.key),
            "perfbisect_kind": "ssh",
            "perfbisect_host": self.name,
            "perfbisect_known_hosts": str(self.folder / "known_hosts"),
            "perfbisect_boot_method": self.method,
            "perfbisect_boot_timeout": BOOT_SECONDS,
            "perfbisect_power": {
                action: [*ipmitool, "chassis", "power", action] for action in ("on", "off", "cycle")
            },
            "perfbisect_console": [*ipmitool, "sol", "activate"],
        }

    def start(self) -> None:
        """Start BMC and machine."""
        self.bmc.start()
        self.power_on()

    def wait_for_ssh(self, timeout: float = BOOT_SECONDS, other_than: str = "") -> str:
        """Wait until it answers from another boot than this; return the boot's id. Raises TimeoutError."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            try:
                boot = self.run("cat", "/proc/sys/kernel/random/boot_id").strip()
                if boot != other_than:
                    return boot
            except (SSHRefused, LineClosed):
                pass
            time.sleep(0.5)
        raise TimeoutError(f"{self.name} did not answer in {timeout:.0f} s:\n{self.console()[-3000:]}")

    def run(self, *command: str, timeout: float = 60.0) -> str:
        """Run a command on it over SSH and return its output. Raises SSHRefused."""
        with SSH(self.ssh_host, timeout=10.0) as ssh:
            return ssh.run(command, timeout=timeout).output

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
            if b"qemu-system" in command[:80] and wanted in command:
                return int(path.parent.name)
        raise ProcessLookupError(f"{self.name} is off")

    def _qemu(self) -> list[str]:
        folder = self.folder
        return [
            *("qemu-system-x86_64", "-name", self.name, "-machine", "q35", "-cpu", "qemu64"),
            *("-m", str(_MEMORY_MB), "-accel", "tcg", "-display", "none", "-vga", "none"),
            *("-daemonize", "-pidfile", f"{folder}/qemu.pid"),
            *("-qmp", f"unix:{folder}/qmp,server=on,wait=off"),
            *("-drive", f"file={folder}/disk.img,format=raw,if=none,id=disk,discard=unmap"),
            *("-device", f"nvme,drive=disk,serial={self.name},bootindex=1"),
            "-netdev",
            f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{self.ssh_port}-:22",
            *("-device", "virtio-net-pci,netdev=net,id=nic,romfile="),
            "-chardev",
            f"socket,id=serial,host=127.0.0.1,port={self.serial_port},server=on,wait=off,"
            f"logfile={folder}/serial.log,logappend=on",
            *("-serial", "chardev:serial"),
            *("-device", "i6300esb", "-action", "watchdog=reset"),
        ]


def answers(port: int) -> bool:
    """Return whether somebody listens on a port of the loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
