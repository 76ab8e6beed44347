"""The power of an emulated machine: `power_switch.py FOLDER get|set NAME [VALUE]`, as ipmi_sim asks for it.

A program of its own, with nothing of perfbisect in it: BMCs run it at each request, so it must start quickly.
FOLDER holds `qemu.args`, the command of the machine, an argument a line; `qemu.pid` while it runs; and
`boot.once` while the next boot comes from the network. With `of-bmc` behind FOLDER it is the machine's BMC
that asks: while there is a `bmc.idle`, that says that it switches, and does nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

_END_SECONDS = 10.0
"""A killed QEMU is gone in less than a second, on a loaded host."""

_QMP_SECONDS = 5.0
_NIC = "/machine/peripheral/nic"


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
    if pid(folder) is not None:
        return
    for name in ("qemu.pid", "qmp"):
        (folder / name).unlink(missing_ok=True)
    subprocess.run((folder / "qemu.args").read_text().splitlines(), check=True)
    if (folder / "boot.once").exists():
        set_boot(folder, "pxe")
        ask(folder, "system_reset")


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


def set_boot(folder: Path, device: str) -> None:
    """Have the next boot come from the network ('pxe'), or from the disk again."""
    once = folder / "boot.once"
    once.touch() if device == "pxe" else once.unlink(missing_ok=True)
    if pid(folder) is not None:
        index = 0 if device == "pxe" else -1
        ask(folder, "qom-set", path=_NIC, property="bootindex", value=index)


def ask(folder: Path, command: str, **arguments: object) -> None:
    """Give QEMU a command of its machine protocol (QMP). Raises RuntimeError for what it refuses."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(_QMP_SECONDS)
        line.connect(str(folder / "qmp"))
        replies = line.makefile()
        replies.readline()
        for request in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments}):
            line.sendall(json.dumps(request).encode())
            answer = next(reply for reply in map(json.loads, replies) if "event" not in reply)
            if "error" in answer:
                raise RuntimeError(answer["error"]["desc"])


def _get(folder: Path, name: str) -> str:
    if name == "power":
        return f"power:{int(pid(folder) is not None)}"
    if name == "words":  # as PDUs say it
        return "on" if pid(folder) is not None else "off"
    if name == "boot":
        return "boot:pxe" if (folder / "boot.once").exists() else "boot:default"
    raise SystemExit(f"this machine has no '{name}'")


def _set(folder: Path, name: str, value: str) -> None:
    if (name, value) == ("power", "1"):
        on(folder)
    elif name in ("power", "shutdown"):
        off(folder)
    elif name == "reset":
        off(folder)
        on(folder)
    elif name == "boot":
        set_boot(folder, value)
    elif name == "signal":
        running = pid(folder)
        if running is not None:
            os.kill(running, int(value))
    elif name == "link":
        ask(folder, "set_link", name="nic", up=value == "1")
    elif name == "disk":  # QEMU has no way back: the machine is to be off before it gets another one
        ask(folder, "human-monitor-command", **{"command-line": "drive_del disk"})
    else:
        raise SystemExit(f"this machine has no '{name}'")


def _pretend(state: Path, action: str, name: str, value: str) -> None:
    """Say that the power is what it was set to, kept in a file."""
    if action == "set":
        state.write_text({"power": value, "shutdown": "0"}.get(name, "1"))
    else:
        print(f"power:{state.read_text()}" if name == "power" else "boot:default")


def main(folder: Path, *request: str) -> None:
    """Do what ipmi_sim's chassis_control asks for; see its sample program ipmi_sim_chassiscontrol."""
    of_bmc = request[0] == "of-bmc"
    action, name, value = (*request[of_bmc:], "1")[:3]
    if of_bmc and (folder / "bmc.idle").exists():
        _pretend(folder / "bmc.idle", action, name, value)
    elif action == "set":
        _set(folder, name, value)
    else:
        print(_get(folder, name))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
