"""The host variables of a testbed: `perfbisect_...` in the inventory, checked at the border."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from bisector.schemas.host_settings import HostSettings
from bisector.schemas.loading import Argument, HostPath, Spec, matching
from bisector.schemas.machine.console import ConsoleVariable, SolConsole
from bisector.schemas.machine.netboot_variables import NetbootVariables
from bisector.schemas.machine.power import IpmiPowerSettings, PowerStages
from bisector.schemas.ranges import BootSeconds, Cpus, MemoryMiB
from bisector.schemas.refusal import WrongKeyError

TestbedKind = Literal["libvirt", "ssh", "local"]
ClockChoice = Literal["auto", "wall", "instructions"]
BootMethod = Literal["direct", "kexec", "grub", "systemd-boot", "pxe"]
BetweenBoots = Literal["reboot", "kexec"]

DEFAULT_WORKDIRS: Mapping[TestbedKind, str] = {
    "libvirt": "/work/perfbisect",
    "ssh": "/var/tmp/perfbisect",  # noqa: S108 - on the testbed, made anew by root for each boot
    "local": "",
}

_ROOT = re.compile(r"(^|\s)root=")
"""Of a kernel's command line; `nfsroot=` and others are something else."""

HOST_DESCRIPTION = "the machine that it is a guest of: an address, or a name of this inventory"


Workdir = Annotated[
    str,
    matching(
        r"|(?!.*/\.\.?(/|$))/[^/\0\n]+(/[^/\0\n]+)+",
        "the path of a folder from / on, two levels deep or more, without '.' and '..'",
    ),
]
"""Its content is removed before each boot, by root on a machine: no folder such as /usr or /home."""


def _of_a_host(uri: str) -> str:
    try:
        _ = urlsplit(uri).port  # it looks at the address, too
    except ValueError as error:
        raise ValueError("has a port above 65535, or brackets without an IPv6 address") from error
    return uri


LibvirtUri = Annotated[
    str,
    matching(
        r"|qemu\+ssh://(root@)?([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(:[1-9][0-9]{0,4})?/system",
        "qemu+ssh://[root@]HOST[:PORT]/system; its key is ansible_ssh_private_key_file",
    ),
    AfterValidator(_of_a_host),
]
"""Another user's files QEMU could not read there: libvirt runs it as a user of its own."""


class TestbedVariables(Spec):
    """The host variables of a testbed, without their prefix."""

    described_in = "playbooks/README.md"

    __test__ = False  # not a pytest class

    kind: TestbedKind = Field(default="ssh", description="a guest here, a machine over SSH, or this machine")
    clock: ClockChoice = Field(
        default="auto", description="auto: wall on hardware and KVM, else instructions"
    )
    memory_mb: MemoryMiB = Field(default=512, description="MiB of memory of a guest")
    cpus: Cpus = Field(default=1, description="CPUs of a guest")
    libvirt_uri: LibvirtUri = Field(
        default="",
        description="of a guest elsewhere: qemu+ssh://[root@]HOST[:PORT]/system; unset: a guest here",
    )
    boot_method: BootMethod | None = Field(
        default=None, description="over SSH, once: kexec, grub, systemd-boot or pxe"
    )
    between_boots: BetweenBoots = Field(
        default="reboot",
        description="with kexec: reboot to the machine's own kernel before each boot, or kexec at once",
    )
    netboot: NetbootVariables | None = Field(
        default=None, description="for pxe: {folder, url, mac}, where files are served"
    )
    boot_timeout: BootSeconds = Field(default=180.0, description="seconds until SSH must answer")
    cmdline: Argument = Field(default="", description="of the kernel, to add; for ssh: all of it, with root=")
    power: PowerStages = Field(
        default=(), repr=False, description="how it is switched on and off: a mapping, or a list of several"
    )
    console: ConsoleVariable = Field(
        default=None, repr=False, description="where its console is read: a mapping, or a command as a list"
    )
    known_hosts: HostPath = Field(default="~/.ssh/known_hosts", description="file with the pinned host key")
    workdir: Workdir = Field(
        default="", description="folder for the workload on the testbed, made anew for each boot"
    )
    environment: HostSettings = Field(
        default_factory=HostSettings, description="settings for all workloads; a manifest overrides them"
    )
    block_device: Argument = Field(
        default="",
        description="a device that workloads may overwrite: /dev/disk/by-id/...; guests get their own",
    )
    host: str = Field(default="", description=HOST_DESCRIPTION)
    worker: Argument = Field(
        default="",
        description="the worker that it belongs to, with a database server; unset: any",
    )

    @model_validator(mode="after")
    def _consistent(self) -> TestbedVariables:
        if self.block_device and not self.block_device.startswith("/dev/"):
            raise WrongKeyError("must be a path below /dev, better /dev/disk/by-id/...", "block_device")
        if self.block_device and self.kind == "libvirt":
            raise WrongKeyError("a libvirt guest gets a disk of its own; leave this out", "block_device")
        if self.libvirt_uri and self.kind != "libvirt":
            raise WrongKeyError("is for guests (perfbisect_kind: libvirt); leave it out", "libvirt_uri")
        if self.kind == "libvirt" and self.boot_method not in (None, "direct"):
            raise WrongKeyError("a libvirt guest is booted directly; leave this out", "boot_method")
        if self.kind == "ssh" and self.boot_method == "direct":
            raise WrongKeyError(
                "'direct' is for guests; choose kexec, grub, systemd-boot or pxe", "boot_method"
            )
        if self.boot_method == "pxe" and self.netboot is None:
            raise WrongKeyError("the boot method pxe needs {folder: ..., url: ..., mac: ...}", "netboot")
        if self.kind != "libvirt" and self.clock == "instructions":
            raise WrongKeyError("'instructions' needs an emulated guest (perfbisect_kind: libvirt)", "clock")
        if self.kind == "ssh" and self.cmdline and not _ROOT.search(self.cmdline):
            raise WrongKeyError("that of a machine is the whole command line and needs root=...", "cmdline")
        if isinstance(self.console, SolConsole) and self.bmc is None:
            raise WrongKeyError("the kind 'sol' needs one of the kind 'ipmi' in perfbisect_power", "console")
        return self

    @property
    def bmc(self) -> IpmiPowerSettings | None:
        """The first BMC that speaks IPMI."""
        return next((stage for stage in self.power if isinstance(stage, IpmiPowerSettings)), None)
