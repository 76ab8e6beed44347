"""The lab: testbeds and builders of an ordinary Ansible inventory, checked at the border.

Hosts of the group `testbeds` measure, those of `builders` compile. perfbisect's own host variables have the
prefix `perfbisect_`; Ansible's usual variables say how a host is reached. `lab_from_inventory` takes the
output of `ansible-inventory --list`, which `adapters/ansible/inventory.py` runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import Field

from bisector.errors import RequestError, nearest
from bisector.schemas.connection import CONNECTION_VARIABLES, Connection, connection_of, read_variables
from bisector.schemas.documents.document import shortened, shown, shown_path
from bisector.schemas.loading import Argument, Spec
from bisector.schemas.machine.ignored_variables import IgnoredVariable, ignored_variables
from bisector.schemas.machine.testbed_variables import DEFAULT_WORKDIRS, HOST_DESCRIPTION, TestbedVariables
from bisector.schemas.machine.unresolved_values import refuse_unresolved
from bisector.schemas.ranges import Jobs

VARIABLE_PREFIX = "perfbisect_"


class BuilderVariables(Spec):
    """The host variables of a builder, without their prefix."""

    described_in = "playbooks/README.md"

    jobs: Jobs | None = Field(default=None, description="parallel compilers; unset: as many as CPUs")
    folder: Argument = Field(
        default="~/.cache/perfbisect", description="for trees and ccache on a remote builder"
    )
    shares_files: bool | None = Field(
        default=None, description="whether it sees this machine's files; unset: if its connection is local"
    )
    host: str = Field(default="", description=HOST_DESCRIPTION)


@dataclass(frozen=True, slots=True)
class TestbedSpec:
    """One testbed of the lab."""

    __test__ = False  # not a pytest class

    name: str
    variables: TestbedVariables
    connection: Connection
    group: str = "testbeds"
    """The group of the inventory, 'testbeds' or one below it, that has this host itself."""
    ignored: tuple[IgnoredVariable, ...] = ()

    @property
    def workdir(self) -> str:
        """Where the workload goes on this testbed."""
        return self.variables.workdir or DEFAULT_WORKDIRS[self.variables.kind]

    @property
    def is_on_each_host(self) -> bool:
        """Whether it is another machine for each host that reads the inventory."""
        if self.variables.libvirt_uri:
            return False
        return self.variables.kind != "ssh" or self.connection.local

    @property
    def guest_host(self) -> str | None:
        """The other host whose guest it is."""
        return urlsplit(self.variables.libvirt_uri).hostname

    @property
    def guest_name(self) -> str:
        """Its name without characters that have a meaning for QEMU or libvirt; two names may become one."""
        return re.sub(r"[^A-Za-z0-9_.]", "_", self.name)


@dataclass(frozen=True, slots=True)
class BuilderSpec:
    """One builder of the lab."""

    name: str
    variables: BuilderVariables
    connection: Connection
    ignored: tuple[IgnoredVariable, ...] = ()


@dataclass(frozen=True, slots=True)
class Lab:
    """All machines of an inventory."""

    inventory: Path
    testbeds: tuple[TestbedSpec, ...]
    builders: tuple[BuilderSpec, ...]

    def testbed(self, name: str) -> TestbedSpec:
        """Return a testbed by name. Raises RequestError naming the known ones."""
        return _named(name, self.testbeds, "testbed", self.inventory)

    def testbeds_of(self, worker: str) -> tuple[TestbedSpec, ...]:
        """Return the testbeds that belong to a worker, or to any."""
        return tuple(spec for spec in self.testbeds if spec.variables.worker in ("", worker))

    @property
    def builders_here(self) -> frozenset[str]:
        """The names of builders that are this machine."""
        return frozenset(spec.name for spec in self.builders if spec.connection.local)

    def builder(self, name: str) -> BuilderSpec:
        """Return a builder by name. Raises RequestError naming the known ones."""
        return _named(name, self.builders, "builder", self.inventory)


HOST_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:@%+-]{0,199}")
"""Hosts name files and locks, so no slash; a file's name has at most 255 bytes."""


def no_host_name(where: str, host: str) -> RequestError:
    """Return the refusal of what no host may be called."""
    return RequestError(
        f"{where}: {shown(host)} is not a valid host name",
        cure="use letters, digits and ._:@%+-, at most 200; 'ansible_host' may hold the address",
    )


V = TypeVar("V", bound=Spec)
N = TypeVar("N", TestbedSpec, BuilderSpec)


def lab_from_inventory(data: Mapping[str, Any], inventory: Path, *, may_lack_testbeds: bool = False) -> Lab:
    """Build the lab from `ansible-inventory --list` data. Raises RequestError naming host and variable."""
    variables = data.get("_meta", {}).get("hostvars", {})
    testbeds, builders = _hosts(data, "testbeds"), _hosts(data, "builders")
    for host in (*testbeds, *builders):
        if not HOST_NAME.fullmatch(host) or host in (".", ".."):
            raise no_host_name(shown_path(inventory), host)
    if not testbeds and not may_lack_testbeds:
        known = [name for name in data if name not in ("_meta", "all")]
        raise RequestError(
            f"{shown_path(inventory)}: the group 'testbeds' has no host{nearest('testbeds', known)}",
            details=f"groups: {', '.join(map(shortened, known[:50])) or 'none'}",
            cure="see playbooks/inventory/laptop.yml for a lab of one machine",
        )

    def checked(host: str, model: type[V]) -> tuple[V, Connection]:
        own, shared = variables.get(host, {}), host in testbeds and host in builders
        read = {k: v for k, v in own.items() if k.startswith(VARIABLE_PREFIX) or k in CONNECTION_VARIABLES}
        refuse_unresolved(host, read, inventory)
        return _checked(host, own, model, shared, inventory), connection_of(host, own, inventory)

    def testbed(host: str, group: str) -> TestbedSpec:
        own, connection = checked(host, TestbedVariables)
        ignored = ignored_variables(host, variables.get(host, {}), own, inventory)
        return TestbedSpec(host, own, connection, group, ignored)

    def builder(host: str) -> BuilderSpec:
        ignored = ignored_variables(host, variables.get(host, {}), None, inventory)
        return BuilderSpec(host, *checked(host, BuilderVariables), ignored)

    return Lab(
        inventory=inventory,
        testbeds=tuple(testbed(host, group) for host, group in testbeds.items()),
        builders=tuple(map(builder, builders)),
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
            wrong = VARIABLE_PREFIX + name
            raise RequestError(
                f"{shown_path(inventory)}: host '{host}': unknown variable '{shortened(wrong)}'"
                f"{nearest(wrong[:100], names)}",
                details=f"known: {', '.join(names)}",
                cure=f"take it out, or write one of those; {model.described_in} has them all",
            )
    return read_variables(
        model,
        {name: v for name, v in own.items() if name in model.model_fields},
        host,
        inventory,
        prefix=VARIABLE_PREFIX,
        described_in=model.described_in,
    )


def _hosts(data: Mapping[str, Any], group: str) -> dict[str, str]:
    """Return host -> the group that lists it, for a group and those below it, in the inventory's order."""
    found: dict[str, str] = {}
    waiting, seen = [group], set()
    while waiting:
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        entry = data.get(name, {})
        for host in entry.get("hosts", ()):
            found.setdefault(host, name)
        waiting += entry.get("children", ())
    return found


def _named(name: str, known: Sequence[N], what: str, inventory: Path) -> N:
    for one in known:
        if one.name == name:
            return one
    names = [one.name for one in known]
    raise RequestError(
        f"the lab has no {what} '{shortened(name)}'{nearest(name[:200], names)}",
        details=f"{what}s in {shown_path(inventory)}: {', '.join(names[:50]) or 'none'}",
        cure="'perfbisect lab list' shows them; --lab FILE names another inventory",
    )
