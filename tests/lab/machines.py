"""Several emulated machines, and the inventory that names them."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tests.lab.box import Box
from tests.lab.debian_kernel import DEFAULT_PACKAGE, unpack
from tests.lab.disk_image import Loader, base_image
from tests.lab.machine import Machine
from tests.lab.machine_design import DESIGNS
from tests.support.demo_history import CACHE

LAB_CACHE = CACHE / "lab"
"""Of root file systems, disks and kernel packages."""


class Machines:
    """Use as a context manager; at the end no process and no file of the machines is left."""

    def __init__(self, kinds: Mapping[str, str]) -> None:
        """kinds: the names of machines, and what each is, as in DESIGNS."""
        self._temporary = tempfile.TemporaryDirectory(prefix="perfbisect-lab-")
        self.folder = Path(self._temporary.name)
        self._box = Box()
        self.machines: list[Machine] = []
        for name, kind in kinds.items():
            self.add(name, kind)

    def __enter__(self) -> Machines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._box.close()
        self._temporary.cleanup()

    def add(self, name: str, kind: str) -> Machine:
        """Make another machine; it is off."""
        design = DESIGNS[kind]
        loader: Loader = "systemd-boot" if design.method == "systemd-boot" else "GRUB"
        base = base_image(unpack(DEFAULT_PACKAGE, LAB_CACHE), LAB_CACHE, loader, design.initramfs)
        cpus = sorted(os.sched_getaffinity(0))
        cpu = cpus[len(self.machines) % len(cpus)]
        machine = Machine(name, self.folder / name, base, self._box, design, cpu)
        self.machines.append(machine)
        return machine

    def start(self) -> None:
        """Switch all on."""
        for machine in self.machines:
            machine.start()


def write_inventory(machines: Sequence[Machine], path: Path, *, heard: bool = True) -> Path:
    """Write the inventory of machines, with this host as builder; return its path. heard: with consoles."""
    hosts = {machine.name: machine.host_variables() for machine in machines}
    if not heard:
        for variables in hosts.values():
            variables.pop("perfbisect_console", None)
    builders = {"here": {"ansible_connection": "local"}}
    children = {"testbeds": {"hosts": hosts}, "builders": {"hosts": builders}}
    path.write_text(json.dumps({"all": {"children": children}}, indent=2))  # JSON is YAML too
    return path
