"""The power of an emulated machine: `power_switch.py FOLDER get|set NAME [VALUE]`, as ipmi_sim asks for it.

A program of its own, with nothing of perfbisect in it: BMCs run it at each request, so it must start quickly.
FOLDER holds `qemu.args`, the command of the machine, an argument a line, and `qemu.pid` while it runs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_END_SECONDS = 10.0
"""A killed QEMU is gone in less than a second, on a loaded host."""


def pid(folder: Path) -> int | None:
    """Return the process id of the running machine, in this process namespace."""
    try:
        number = int((folder / "qemu.pid").read_text())
        os.kill(number, 0)
    except (OSError, ValueError):
        return None
    return number


def on(folder: Path) -> None:
    """Switch on. Raises CalledProcessError with QEMU's words on stderr."""
    if pid(folder) is None:
        (folder / "qemu.pid").unlink(missing_ok=True)
        (folder / "qmp").unlink(missing_ok=True)
        subprocess.run((folder / "qemu.args").read_text().splitlines(), check=True)


def off(folder: Path) -> None:
    """Switch off: as by pulling the plug."""
    number = pid(folder)
    if number is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(number, signal.SIGKILL)
    deadline = time.monotonic() + _END_SECONDS
    while pid(folder) is not None and time.monotonic() < deadline:
        time.sleep(0.02)


def send(folder: Path, number: int) -> None:
    """Send a signal to the machine's process: SIGSTOP hangs it, SIGCONT goes on."""
    running = pid(folder)
    if running is not None:
        os.kill(running, number)


def _set(folder: Path, name: str, value: str) -> None:
    if (name, value) == ("power", "1"):
        on(folder)
    elif name in ("power", "shutdown"):
        off(folder)
    elif name == "reset":
        off(folder)
        on(folder)
    elif name == "signal":
        send(folder, int(value))
    else:
        raise SystemExit(f"this machine has no '{name}'")


def main(folder: Path, action: str, name: str, value: str = "1") -> None:
    """Do what ipmi_sim's chassis_control asks for; see its sample program ipmi_sim_chassiscontrol."""
    if action == "set":
        _set(folder, name, value)
    elif name == "power":
        print(f"power:{int(pid(folder) is not None)}")
    else:
        raise SystemExit(f"this machine has no '{name}'")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:5])
