"""The lab: testbeds and builders of an ordinary Ansible inventory, checked at the border.

Hosts of the group `testbeds` measure, those of `builders` compile. perfbisect's own host variables have the
prefix `perfbisect_`; Ansible's usual variables say how a host is reached. `lab_from_inventory` takes the
output of `ansible-inventory --list`, which `adapters/ansible/inventory.py` runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError, model_validator

from bisector.errors import RequestError, nearest
from bisector.schemas.host_settings import HostSettings
from bisector.schemas.loading import Spec, refusal

VARIABLE_PREFIX = "perfbisect_"

TestbedKind = Literal["libvirt", "ssh", "local"]
ClockChoice = Literal["auto", "wall", "instructions"]
BootMethod = Literal["direct", "kexec", "grub"]

DEFAULT_WORKDIRS: Mapping[TestbedKind, str] = {
    "libvirt": "/work/perfbisect",
    "ssh": "/var/tmp/perfbisect",  # noqa: S108 - on the testbed, made anew by root for each boot
    "local": "",
}

HOST_DESCRIPTION = "the machine that it is a guest of: an address, or a name of this inventory"


class PowerVariables(Spec):
    """Commands of this machine, as lists, that switch a testbed on and off: ipmitool, a PDU's script, ..."""

    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    cycle: tuple[str, ...] = ()


class TestbedVariables(Spec):
    """The host variables of a testbed, without their prefix."""

    __test__ = False  # not a pytest class

    kind: TestbedKind = Field(default="ssh", description="a guest here, a machine over SSH, or this machine")
    clock: ClockChoice = Field(
        default="auto", description="auto: wall on hardware and KVM, else instructions"
    )
    memory_mb: int = Field(default=512, ge=64, description="of a guest")
    cpus: int = Field(default=1, ge=1, description="of a guest")
    boot_method: BootMethod | None = Field(default=None, description="kexec or grub (one-shot) over SSH")
    boot_timeout: float = Field(default=180.0, gt=0, description="seconds until SSH must answer")
    cmdline: str = Field(default="", description="kernel command line to add; for ssh: all of it, with root=")
    power: PowerVariables = Field(default_factory=PowerVariables)
    console: tuple[str, ...] = Field(
        default=(), description="command that prints the serial console continuously"
    )
    known_hosts: str = Field(default="~/.ssh/known_hosts", description="file with the pinned host key")
    workdir: str = Field(default="", description="folder for the workload on the testbed")
    environment: HostSettings = Field(
        default_factory=HostSettings, description="settings for all workloads; a manifest overrides them"
    )
    block_device: str = Field(
        default="",
        description="a device that workloads may overwrite: /dev/disk/by-id/...; guests get their own",
    )
    host: str = Field(default="", description=HOST_DESCRIPTION)

    @model_validator(mode="after")
    def _consistent(self) -> TestbedVariables:
        if self.block_device and not self.block_device.startswith("/dev/"):
            raise ValueError("perfbisect_block_device must be a path below /dev, better /dev/disk/by-id/...")
        if self.block_device and self.kind == "libvirt":
            raise ValueError("a libvirt guest gets a disk of its own; leave perfbisect_block_device out")
        if self.kind == "libvirt" and self.boot_method not in (None, "direct"):
            raise ValueError("a libvirt guest is booted directly; leave perfbisect_boot_method out")
        if self.kind == "ssh" and self.boot_method == "direct":
            raise ValueError("perfbisect_boot_method 'direct' is for guests; choose kexec or grub")
        if self.kind != "libvirt" and self.clock == "instructions":
            raise ValueError(
                "perfbisect_clock 'instructions' needs an emulated guest (perfbisect_kind: libvirt)"
            )
        if (
            self.kind == "ssh"
            and self.boot_method in ("kexec", None)
            and self.cmdline
            and "root=" not in self.cmdline
        ):
            raise ValueError("perfbisect_cmdline of a machine is the whole command line and needs root=...")
        return self


class BuilderVariables(Spec):
    """The host variables of a builder, without their prefix."""

    jobs: int | None = Field(default=None, ge=1, description="parallel compilers; unset: as many as CPUs")
    folder: str = Field(default="~/.cache/perfbisect", description="for trees and ccache on a remote builder")
    shares_files: bool | None = Field(
        default=None, description="whether it sees this machine's files; unset: if its connection is local"
    )
    host: str = Field(default="", description=HOST_DESCRIPTION)


@dataclass(frozen=True, slots=True)
class Connection:
    """How a host is reached, from Ansible's own variables. local: it is this machine."""

    address: str
    port: int
    user: str
    key: Path | None
    local: bool


@dataclass(frozen=True, slots=True)
class TestbedSpec:
    """One testbed of the lab."""

    __test__ = False  # not a pytest class

    name: str
    variables: TestbedVariables
    connection: Connection

    @property
    def workdir(self) -> str:
        """Where the workload goes on this testbed."""
        return self.variables.workdir or DEFAULT_WORKDIRS[self.variables.kind]


@dataclass(frozen=True, slots=True)
class BuilderSpec:
    """One builder of the lab."""

    name: str
    variables: BuilderVariables
    connection: Connection


@dataclass(frozen=True, slots=True)
class Lab:
    """All machines of an inventory."""

    inventory: Path
    testbeds: tuple[TestbedSpec, ...]
    builders: tuple[BuilderSpec, ...]

    def testbed(self, name: str) -> TestbedSpec:
        """Return a testbed by name. Raises RequestError naming the known ones."""
        return _named(name, self.testbeds, "testbed", self.inventory)

    def builder(self, name: str) -> BuilderSpec:
        """Return a builder by name. Raises RequestError naming the known ones."""
        return _named(name, self.builders, "builder", self.inventory)


V = TypeVar("V", bound=Spec)
N = TypeVar("N", TestbedSpec, BuilderSpec)


def lab_from_inventory(data: Mapping[str, Any], inventory: Path) -> Lab:
    """Build the lab from `ansible-inventory --list` data. Raises RequestError naming host and variable."""
    variables = data.get("_meta", {}).get("hostvars", {})
    testbeds, builders = _hosts(data, "testbeds"), _hosts(data, "builders")
    if not testbeds:
        known = [name for name in data if name not in ("_meta", "all")]
        raise RequestError(
            f"{inventory}: the group 'testbeds' has no host{nearest('testbeds', known)}",
            details=f"groups: {', '.join(known) or 'none'}",
            cure="see playbooks/inventory/laptop.yml for a lab of one machine",
        )

    def checked(host: str, model: type[V]) -> tuple[V, Connection]:
        own, shared = variables.get(host, {}), host in testbeds and host in builders
        return _checked(host, own, model, shared, inventory), _connection(host, own)

    return Lab(
        inventory=inventory,
        testbeds=tuple(TestbedSpec(host, *checked(host, TestbedVariables)) for host in testbeds),
        builders=tuple(BuilderSpec(host, *checked(host, BuilderVariables)) for host in builders),
    )


def _checked(host: str, variables: Mapping[str, Any], model: type[V], shared: bool, inventory: Path) -> V:
    """Validate a host's prefixed variables. shared: it is in both groups, so both kinds are allowed."""
    known = {name for owner in (TestbedVariables, BuilderVariables) for name in owner.model_fields}
    own = {
        name.removeprefix(VARIABLE_PREFIX): v
        for name, v in variables.items()
        if name.startswith(VARIABLE_PREFIX)
    }
    allowed = known if shared else set(model.model_fields)
    names = [VARIABLE_PREFIX + name for name in sorted(allowed)]
    for name in own:
        if name not in allowed:
            raise RequestError(
                f"{inventory}: host '{host}': unknown variable '{VARIABLE_PREFIX}{name}'"
                f"{nearest(VARIABLE_PREFIX + name, names)}",
                details=f"known: {', '.join(names)}",
            )
    try:
        return model.model_validate({name: v for name, v in own.items() if name in model.model_fields})
    except ValidationError as error:
        raise refusal(
            error,
            model,
            lambda key: f"{inventory}: host '{host}'",
            lambda key: f"variable '{VARIABLE_PREFIX}{'.'.join(key)}'",
        ) from error


def _hosts(data: Mapping[str, Any], group: str) -> list[str]:
    """All hosts of a group and of the groups below it, each once, in their order."""
    found: dict[str, None] = {}
    waiting, seen = [group], set()
    while waiting:
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        entry = data.get(name, {})
        found.update(dict.fromkeys(entry.get("hosts", ())))
        waiting += entry.get("children", ())
    return list(found)


def _connection(host: str, variables: Mapping[str, Any]) -> Connection:
    key = variables.get("ansible_ssh_private_key_file")
    return Connection(
        address=str(variables.get("ansible_host", host)),
        port=int(variables.get("ansible_port", 22)),
        user=str(variables.get("ansible_user", "root")),
        key=Path(str(key)).expanduser() if key else None,
        local=variables.get("ansible_connection") == "local",
    )


def _named(name: str, known: Sequence[N], what: str, inventory: Path) -> N:
    for one in known:
        if one.name == name:
            return one
    names = [one.name for one in known]
    raise RequestError(
        f"the lab has no {what} '{name}'{nearest(name, names)}",
        details=f"{what}s in {inventory}: {', '.join(names) or 'none'}",
        cure="'perfbisect lab list' shows them",
    )
