"""Variables of a host in an inventory that perfbisect does not follow, whether or not Ansible does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bisector.schemas.documents.document import shortened, shown_path
from bisector.schemas.machine.ssh_arguments import KNOWN_HOSTS, all_options
from bisector.schemas.machine.testbed_variables import TestbedVariables

_ALIASES = ("host", "port", "user")
"""ansible_ssh_host is Ansible's older name of ansible_host, and so on."""

_JUMPS = {"proxyjump": "ProxyJump", "proxycommand": "ProxyCommand"}
"""Their values are not shown: a command may hold a password."""

_NO_JUMP = (
    "make the machine reachable without it: by a VPN, or by a port that another program forwards "
    "(ssh -N -L 2222:MACHINE:22 JUMPHOST), with ansible_host: 127.0.0.1 and ansible_port: 2222"
)


@dataclass(frozen=True, slots=True)
class IgnoredVariable:
    """problem: which one, of which host in which file, and why; cure: what would be right."""

    problem: str
    cure: str


def ignored_variables(
    host: str, variables: Mapping[str, Any], testbed: TestbedVariables | None, inventory: Path
) -> tuple[IgnoredVariable, ...]:
    """Return what is not followed. variables: all of the host; testbed: its own, None for a builder."""
    where = f"{shown_path(inventory)}: host '{host}'"
    found = [*_of_ssh(variables, testbed), *(() if testbed is None else _of_testbed(testbed))]
    return tuple(
        IgnoredVariable(f"{where}: variable '{variable}': {problem}", cure)
        for variable, problem, cure in found
    )


def _of_ssh(variables: Mapping[str, Any], testbed: TestbedVariables | None) -> Iterator[tuple[str, str, str]]:
    """Yield each variable of how a host is reached, what is not followed, and a cure."""
    if variables.get("ansible_connection") == "local":
        return
    for name in _ALIASES:
        alias, known = f"ansible_ssh_{name}", f"ansible_{name}"
        if alias in variables and str(variables[alias]) != str(variables.get(known)):
            value = shortened(str(variables[alias]))
            yield alias, "is not read: perfbisect knows the newer name", f"write {known}: {value}"
    for variable, option, value in all_options(variables):
        if option in _JUMPS and value.lower() != "none":
            yield variable, f"perfbisect's own SSH does not go through its {_JUMPS[option]}", _NO_JUMP
        elif option == KNOWN_HOSTS and testbed is not None and value != testbed.known_hosts:
            cure = f"write perfbisect_known_hosts: {shortened(value)}"
            yield variable, "of a testbed its UserKnownHostsFile is not read", cure


def _of_testbed(testbed: TestbedVariables) -> Iterator[tuple[str, str, str]]:
    if testbed.kind == "libvirt":
        for name in ("power", "console"):
            if getattr(testbed, name):
                why = "a libvirt guest is switched and read through libvirt, and this is not used"
                yield f"perfbisect_{name}", why, "leave it out; it is for machines (perfbisect_kind: ssh)"
    if testbed.between_boots == "kexec" and testbed.boot_method != "kexec":
        method = testbed.boot_method or "none"
        yield (
            "perfbisect_between_boots",
            f"'kexec' counts with the boot method kexec alone, and here it is {method}",
            "leave it out, or set perfbisect_boot_method: kexec",
        )
