"""Use case of `perfbisect lab add`: a machine is looked at, and becomes a testbed of the inventory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bisector.app.first_settings import Address
from bisector.app.output_file import write_output_file
from bisector.app.wiring import Wiring
from bisector.errors import RequestError
from bisector.schemas.documents.document import read_document
from bisector.schemas.documents.inventory_text import add_host, is_yaml, new_inventory
from bisector.schemas.lab import HOST_NAME, Lab, lab_from_inventory

if TYPE_CHECKING:
    from bisector.adapters.machine.machine_facts import MachineFacts
    from bisector.adapters.system.ssh_keys import HostKey

_TOOLS = ("kexec", "grub-reboot", "grub2-reboot", "bootctl")


@dataclass(frozen=True, slots=True)
class Suggested:
    """What a machine's own facts say of how it is booted. method: '' where none works; why: in words."""

    method: str
    why: str
    cmdline: str
    machine: str


def unpinned_key(address: Address, known_hosts: Path) -> HostKey | None:
    """Return the key that the machine shows, None where one is pinned already. Raises SSHRefused."""
    from bisector.adapters.system.ssh import fetch_host_key
    from bisector.adapters.system.ssh_keys import is_pinned

    if is_pinned(known_hosts, address.host, address.port):
        return None
    return fetch_host_key(address.host, address.port)


def pin(known_hosts: Path, key: HostKey) -> None:
    """Trust a key from now on."""
    from bisector.adapters.system.ssh_keys import pin_host_key

    pin_host_key(known_hosts, key)


def look_at(address: Address, key: Path, known_hosts: Path) -> Suggested:
    """Ask the machine how it can be booted. Raises InfrastructureError where it cannot be reached."""
    from bisector.adapters.machine.machine_facts import read_machine_facts
    from bisector.adapters.system.ssh import SSH
    from bisector.adapters.system.ssh_endpoint import SSHHost

    host = SSHHost(address.host, address.port, address.user or "root", key, known_hosts)
    with SSH(host) as ssh:
        return suggest(read_machine_facts(ssh, "/var/tmp", _TOOLS))  # noqa: S108 - is only looked at


def suggest(facts: MachineFacts) -> Suggested:
    """Choose the boot method: kexec is fastest, and needs nothing of firmware and boot loader."""
    from bisector.adapters.machine.machine_needs import takes_only_signed

    method, has_kexec = "", facts.has("kexec") and facts.get("kexec_disabled") != "1"
    if has_kexec and not takes_only_signed(facts, "kexec"):
        method, why = "kexec", "kexec is installed, and allowed"
    elif signed := takes_only_signed(facts, "grub"):
        why = f"{signed}: it starts no kernel that is not signed, so switch Secure Boot off in its firmware"
    elif (facts.has("grub-reboot") or facts.has("grub2-reboot")) and facts.get("grub_once") == "yes":
        method, why = "grub", f"GRUB obeys one-shot choices ({facts.get('grub_menu')}); there is no kexec"
    elif facts.has("bootctl") and facts.get("firmware") == "uefi" and facts.get("loader_entries") == "yes":
        method, why = "systemd-boot", "systemd-boot has entries, by UEFI; there is no kexec"
    else:
        why = "it has no kexec that is allowed, no GRUB that obeys one-shot choices, and no systemd-boot"
    machine = " ".join(filter(None, (facts.get("machine"), facts.get("firmware").upper())))
    return Suggested(method, why, facts.get("cmdline"), f"{machine}, runs {facts.get('release')}")


def inventory_to_change(wiring: Wiring, host: str) -> Path:
    """Return the inventory that a machine can be added to. host: its address, for the cure.

    Raises RequestError where none is set, or what is there is no lab, or one that is not written in YAML. It
    may lack testbeds: the first one is added like any other.
    """
    inventory = wiring.settings.lab
    if inventory is None:
        raise RequestError(
            "no inventory is set that a machine could be added to",
            cure=f"add --lab FILE; or make one: perfbisect init --testbed ssh --host {host}",
        )
    if inventory.exists():
        wiring.read_lab(may_lack_testbeds=True)
    if inventory.is_file() and not is_yaml(read_document(inventory)):
        raise RequestError(
            f"{inventory} is not written in YAML, and machines are added to YAML only",
            cure="put the file into a folder and name that as inventory: the machine becomes a file there; "
            "or add it by hand",
        )
    return inventory


def new_name(wiring: Wiring, inventory: Path, name: str) -> str:
    """Return a name for a testbed. Raises RequestError for one that the inventory has, or that is none."""
    if not HOST_NAME.fullmatch(name) or name in (".", ".."):
        raise RequestError(
            f"'{name[:40]}' is not a valid host name", cure="use letters, digits and ._:@%+-, at most 200"
        )
    known = wiring.read_lab(may_lack_testbeds=True).testbeds if inventory.exists() else ()
    if any(one.name == name for one in known):
        raise RequestError(
            f"{inventory} has a testbed '{name}' already", cure="give the new one another name"
        )
    if inventory.is_dir() and (file := inventory / f"{name}.yml").exists():
        raise RequestError(f"{file} is there already", cure="give the new testbed another name")
    return name


def check_testbed(name: str, variables: Mapping[str, Any], inventory: Path) -> Lab:
    """Return a lab of this testbed alone. Raises RequestError naming what is wrong with it."""
    return lab_from_inventory(
        {"_meta": {"hostvars": {name: dict(variables)}}, "testbeds": {"hosts": [name]}}, inventory
    )


def changed_inventory(wiring: Wiring, name: str, variables: Mapping[str, Any]) -> tuple[Path, str]:
    """Return the file to write and its new text. Raises RequestError where the machine cannot be added."""
    inventory = inventory_to_change(wiring, name)
    check_testbed(new_name(wiring, inventory, name), variables, inventory)
    if inventory.is_dir():
        return inventory / f"{name}.yml", new_inventory(name, variables)
    if not inventory.exists():
        return inventory, new_inventory(name, variables)
    return inventory, add_host(inventory.read_text(encoding="utf-8"), inventory, name, variables)


def write_inventory(wiring: Wiring, path: Path, text: str, name: str) -> Wiring:
    """Write the inventory and read it as a lab with this testbed; else put back what was there.

    Return a wiring that knows the new lab.
    """
    before = path.read_text(encoding="utf-8") if path.exists() else None
    write_output_file(path, text)
    again = Wiring(wiring.settings, wiring.note)
    try:
        again.lab.testbed(name)
    except BaseException:
        if before is None:
            path.unlink()
        else:
            write_output_file(path, before)
        raise
    return again
