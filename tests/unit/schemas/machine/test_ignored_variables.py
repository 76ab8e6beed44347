"""What an inventory says and perfbisect does not follow is told, and what it follows is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bisector.schemas.lab import lab_from_inventory


def ignored(variables: dict[str, Any], group: str = "testbeds") -> list[tuple[str, str]]:
    data = {
        "_meta": {"hostvars": {"box1": variables, "other": {}}},
        "testbeds": {"hosts": ["box1" if group == "testbeds" else "other"]},
        "builders": {"hosts": ["box1"] if group == "builders" else []},
    }
    lab = lab_from_inventory(data, Path("/lab/hosts.yml"))
    spec = lab.builder("box1") if group == "builders" else lab.testbed("box1")
    where = "/lab/hosts.yml: host 'box1': variable "
    assert all(one.problem.startswith(where) for one in spec.ignored)
    return [(one.problem.removeprefix(where), one.cure) for one in spec.ignored]


@pytest.mark.parametrize("group", ["testbeds", "builders"])
@pytest.mark.parametrize(
    ("variables", "said", "cure"),
    [
        ({"ansible_ssh_host": "10.0.0.1"}, "'ansible_ssh_host': is not read", "write ansible_host: 10.0.0.1"),
        ({"ansible_ssh_user": "me", "ansible_user": "you"}, "'ansible_ssh_user'", "write ansible_user: me"),
        ({"ansible_ssh_port": 2222}, "'ansible_ssh_port'", "write ansible_port: 2222"),
        ({"ansible_ssh_common_args": "-J gate"}, "does not go through its ProxyJump", "ssh -N -L"),
        ({"ansible_ssh_extra_args": "-o ProxyJump=gate"}, "'ansible_ssh_extra_args': ", "ansible_port: 2222"),
        ({"ansible_ssh_args": "-oProxyCommand='sshpass -p x'"}, "its ProxyCommand", "127.0.0.1"),
    ],
)
def test_how_a_host_is_reached(variables: dict[str, Any], said: str, cure: str, group: str) -> None:
    ((found, mended),) = ignored(variables, group)
    assert said in found and cure in mended
    assert "sshpass" not in found + mended, "it may hold a password"


@pytest.mark.parametrize(
    ("variables", "said", "cure"),
    [
        (
            {"perfbisect_kind": "libvirt", "perfbisect_power": {"cycle": ["a"]}},
            "'perfbisect_power': a libvirt guest is switched and read through libvirt",
            "leave it out",
        ),
        (
            {"perfbisect_kind": "libvirt", "perfbisect_console": ["a"]},
            "'perfbisect_console': ",
            "leave it out",
        ),
        (
            {"perfbisect_boot_method": "grub", "perfbisect_between_boots": "kexec"},
            "'kexec' counts with the boot method kexec alone, and here it is grub",
            "set perfbisect_boot_method: kexec",
        ),
        (
            {"ansible_ssh_common_args": "-o UserKnownHostsFile=/lab/known"},
            "of a testbed its UserKnownHostsFile is not read",
            "write perfbisect_known_hosts: /lab/known",
        ),
    ],
)
def test_of_a_testbed(variables: dict[str, Any], said: str, cure: str) -> None:
    ((found, mended),) = ignored(variables)
    assert said in found and cure in mended


@pytest.mark.parametrize(
    "variables",
    [
        {"ansible_ssh_host": "10.0.0.1", "ansible_host": "10.0.0.1", "ansible_ssh_private_key_file": "/k"},
        {"ansible_connection": "local", "ansible_ssh_common_args": "-J gate", "ansible_ssh_user": "me"},
        {"ansible_ssh_common_args": "-o ProxyJump=none -o StrictHostKeyChecking=yes"},
        {"ansible_ssh_common_args": "-o UserKnownHostsFile=/k", "perfbisect_known_hosts": "/k"},
        {"perfbisect_power": {"cycle": ["a"]}, "perfbisect_console": ["a"]},
        {"perfbisect_boot_method": "kexec", "perfbisect_between_boots": "kexec"},
        {"perfbisect_boot_method": "grub", "perfbisect_between_boots": "reboot"},
    ],
)
def test_what_is_followed_is_not_told(variables: dict[str, Any]) -> None:
    assert ignored(variables) == []
