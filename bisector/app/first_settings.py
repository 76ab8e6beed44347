"""The first settings file and inventory of a user, from a few answers; `perfbisect init` asks for them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bisector.app.output_file import write_output_file
from bisector.app.wiring import Wiring
from bisector.errors import RequestError
from bisector.schemas.documents.inventory_text import host_lines
from bisector.schemas.settings import SETTINGS_FILE, Settings, load_settings

if TYPE_CHECKING:
    from bisector.schemas.machine.testbed_variables import TestbedKind

INVENTORY_FILE = "lab.yml"

MachineBoot = Literal["kexec", "grub", "systemd-boot"]
"""How a machine is booted into a kernel; see playbooks/README.md. pxe needs more than an answer."""

_ADDRESS = re.compile(
    r"(?:(?P<user>[A-Za-z0-9._-]{1,64})@)?(?P<host>[A-Za-z0-9][A-Za-z0-9._-]{0,199})(?::(?P<port>[0-9]{1,5}))?"
)


@dataclass(frozen=True, slots=True)
class Address:
    """A machine that is reached by SSH. user: '' for root."""

    host: str
    user: str = ""
    port: int = 22

    def variables(self) -> dict[str, str | int]:
        """Return it as Ansible's host variables."""
        found: dict[str, str | int] = {"ansible_host": self.host}
        if self.user:
            found["ansible_user"] = self.user
        if self.port != 22:
            found["ansible_port"] = self.port
        return found


@dataclass(frozen=True, slots=True)
class Answers:
    """A user's answers. machines: testbeds over SSH; key: that opens them and the builder, None for none yet;
    builder: None for this machine; None: the default."""

    repo: Path | None
    testbed: TestbedKind
    machines: tuple[Address, ...]
    boot: MachineBoot
    builder: Address | None
    state_dir: Path | None
    cache_dir: Path | None
    key: Path | None = None


def parse_address(text: str) -> Address:
    """Read '[USER@]HOST[:PORT]'. Raises RequestError."""
    found = _ADDRESS.fullmatch(text)
    port = int(found["port"] or 22) if found is not None else 0
    if found is None or not 1 <= port <= 65535:
        raise RequestError(
            f"'{text[:40]}' is not the address of a machine", cure="write [USER@]HOST[:PORT], as in root@box1"
        )
    return Address(found["host"], found["user"] or "", port)


def check_repository(repo: Path) -> None:
    """Raise RequestError if a folder is no repository that can be read."""
    Wiring(Settings(repo=repo)).source()


def files(folder: Path, answers: Answers) -> dict[Path, str]:
    """Return what is to be written: path -> text, in the order in which it is written."""
    return {
        folder / INVENTORY_FILE: "\n".join(_inventory(answers)) + "\n",
        folder / SETTINGS_FILE: "\n".join(_settings(answers)) + "\n",
    }


def write(texts: dict[Path, str]) -> Wiring:
    """Write the files and read them again. Raises RequestError for what is wrong with them."""
    for path, text in texts.items():
        write_output_file(path, text)
    wiring = Wiring(load_settings(next(path for path in texts if path.name == SETTINGS_FILE)))
    _ = wiring.lab
    return wiring


def _settings(answers: Answers) -> Iterator[str]:
    yield "# Settings of perfbisect in this folder and below it; 'perfbisect settings show' says what holds."
    for name, value in (
        ("repo", answers.repo),
        ("lab", INVENTORY_FILE),
        ("state_dir", answers.state_dir),
        ("cache_dir", answers.cache_dir),
    ):
        if value is not None:
            # A text in JSON, with all but ASCII escaped, is one in TOML and YAML too.
            yield f"{name} = {json.dumps(str(value))}  # {Settings.model_fields[name].description}"


def _inventory(answers: Answers) -> Iterator[str]:
    yield "# The lab: an Ansible inventory; 'perfbisect lab check' tries it."
    yield "all:"
    yield "  children:"
    yield "    testbeds:"
    yield "      hosts:"
    key = {"ansible_ssh_private_key_file": str(answers.key)} if answers.key is not None else {}
    if answers.testbed == "ssh":
        for machine in answers.machines:
            more = {**key, "perfbisect_kind": "ssh", "perfbisect_boot_method": answers.boot}
            yield from host_lines(machine.host, {**machine.variables(), **more})
    else:
        yield "        guest:" if answers.testbed == "libvirt" else "        this-host:"
        yield f"          perfbisect_kind: {answers.testbed}"
    yield "    builders:"
    yield "      hosts:"
    if answers.builder is None:
        yield "        here:"
        yield "          ansible_connection: local"
    else:
        yield from host_lines(answers.builder.host, {**answers.builder.variables(), **key})
