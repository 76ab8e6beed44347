"""The machines that guests are, a row an architecture: what emulates one, its ports, what compiles for it.

x86_64 guests run a distribution's user space from a disk or static programs from an initramfs. Guests of
another architecture than this machine's are always emulated and always have the initramfs: a distribution's
image cannot be made here without running foreign programs.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from bisector.adapters.system.host_requirements import install
from bisector.errors import InfrastructureError


@dataclass(frozen=True, slots=True)
class Static:
    """A command that compiles static programs, without their names; the Debian packages that bring it."""

    command: tuple[str, ...]
    packages: str


@dataclass(frozen=True, slots=True)
class Port:
    """A serial port. target: libvirt's XML for it; terminal: its name in the guest; number: major, minor."""

    target: str
    terminal: str
    number: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Machine:
    """One architecture, as `arch` in recipes calls it.

    guest: libvirt's name of it; model: of the machine; emulator: the program, and the Debian package it is
    in; console: where kernel messages go; line: where the agent speaks in a guest with an initramfs;
    cpu: libvirt's XML of a processor that its oldest kernels know; static: tried in this order.
    """

    arch: str
    guest: str
    model: str
    emulator: str
    package: str
    console: Port
    line: Port
    cpu: str
    static: tuple[Static, ...]

    @property
    def native(self) -> bool:
        """Whether this machine's own processor could run it (KVM)."""
        return platform.machine() == self.guest

    def require_emulator(self) -> None:
        """Raise InfrastructureError, with the command that mends it, unless the emulator is here."""
        if shutil.which(self.emulator) is None:
            raise InfrastructureError(
                f"'{self.emulator}', which runs {self.arch} guests, is not installed",
                cure=install(self.package),
            )

    def compiler(self) -> tuple[str, ...]:
        """Return the C compiler and flags for static programs. Raises InfrastructureError for none."""
        for candidate in self.static:
            if shutil.which(candidate.command[0]):
                return candidate.command
        raise InfrastructureError(
            f"no C compiler for static {self.arch} programs is installed",
            cure=install(self.static[0].packages),
        )


_ISA = "<target type='isa-serial' port='{}'/>"

X86_64 = Machine(
    arch="x86_64",
    guest="x86_64",
    # It has no IDE, which old kernels probe with spinning delays: a second of an instruction clock's time.
    model="q35",
    emulator="qemu-system-x86_64",
    package="qemu-system-x86",
    console=Port(_ISA.format(0), "ttyS0", (4, 64)),
    line=Port(_ISA.format(1), "ttyS1", (4, 65)),
    # A processor of the time of kernels before 3.0.
    cpu="<cpu mode='custom' match='exact' check='none'><model>qemu64</model></cpu>",
    # musl first: its programs run on kernels since 2.6.18.
    static=(
        Static(("musl-gcc", "-static", "-no-pie", "-fno-pie"), "musl-tools gcc"),
        Static(("gcc", "-static"), "gcc"),
    ),
)

ARM64 = Machine(
    arch="arm64",
    guest="aarch64",
    model="virt",
    emulator="qemu-system-aarch64",
    package="qemu-system-arm",
    console=Port("<target type='system-serial'><model name='pl011'/></target>", "ttyAMA0", (204, 64)),
    # The machine has one port of its own; the second one is a card.
    line=Port("<target type='pci-serial'><model name='pci-serial'/></target>", "ttyS0", (4, 64)),
    # Older than pointer authentication, which is costly to emulate.
    cpu="<cpu mode='custom' match='exact' check='none'><model>cortex-a72</model></cpu>",
    static=(Static(("aarch64-linux-gnu-gcc", "-static"), "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"),),
)

MACHINES: Mapping[str, Machine] = {machine.arch: machine for machine in (X86_64, ARM64)}


def machine_for(arch: str) -> Machine:
    """Return the row of an architecture. Raises InfrastructureError for one that no guest can be of."""
    if arch not in MACHINES:
        raise InfrastructureError(
            f"there are no {arch} guests",
            details=f"guests can be: {', '.join(MACHINES)}",
            cure="name a recipe for one of these with --recipe, or a testbed that is such a machine",
        )
    return MACHINES[arch]
