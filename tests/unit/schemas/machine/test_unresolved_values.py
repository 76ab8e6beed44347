"""Templates and encrypted values are refused in what perfbisect reads; the rest is Ansible's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bisector.errors import RequestError
from bisector.schemas.lab import Lab, lab_from_inventory

VAULT = {"__ansible_vault": "$ANSIBLE_VAULT;1.1;AES256\n6162\n"}
IPMI = {"kind": "ipmi", "address": "192.0.2.1", "user": "admin", "password_env": "BMC"}


def read(variables: dict[str, Any], group: str = "testbeds") -> Lab:
    data = {
        "_meta": {"hostvars": {"box1": variables, "other": {}, "third": {"ansible_host": "{{ elsewhere }}"}}},
        "testbeds": {"hosts": ["box1" if group == "testbeds" else "other"]},
        "builders": {"hosts": ["box1"] if group == "builders" else []},
        "web": {"hosts": ["third"]},
    }
    return lab_from_inventory(data, Path("/lab/hosts.yml"))


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"ansible_host": "{{ inventory_hostname }}.lab"}, "ansible_host"),
        ({"ansible_port": "{{ port }}"}, "ansible_port"),
        ({"ansible_ssh_private_key_file": "{% if a %}b{% endif %}"}, "ansible_ssh_private_key_file"),
        ({"perfbisect_cmdline": "root={{ disk }}"}, "perfbisect_cmdline"),
        ({"perfbisect_power": "{{ power }}"}, "perfbisect_power"),
        ({"perfbisect_power": [IPMI, {**IPMI, "address": "{{ bmc }}"}]}, "perfbisect_power.1.address"),
    ],
)
@pytest.mark.parametrize("group", ["testbeds", "builders"])
def test_a_template_is_refused_where_it_stands(variables: dict[str, Any], named: str, group: str) -> None:
    """A machine was told not to answer, as root@{{ inventory_hostname }}.lab."""
    with pytest.raises(RequestError) as caught:
        read(variables, group)
    where = f"/lab/hosts.yml: host 'box1': variable '{named}': "
    assert caught.value.message == f"{where}is a template, which perfbisect does not resolve"
    assert "write there what it stands for" in caught.value.cure


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"perfbisect_power": VAULT}, "perfbisect_power"),
        ({"perfbisect_power": {**IPMI, "user": VAULT}}, "perfbisect_power.user"),
        ({"ansible_user": VAULT}, "ansible_user"),
    ],
)
def test_an_encrypted_value_is_refused_with_where_passwords_belong(
    variables: dict[str, Any], named: str
) -> None:
    with pytest.raises(RequestError) as caught:
        read(variables)
    assert f"variable '{named}': is encrypted by Ansible Vault" in caught.value.message
    assert "password_file" in caught.value.cure
    assert "6162" not in f"{caught.value.message}{caught.value.details}"


def test_words_of_commands_and_what_perfbisect_does_not_read_may_look_like_templates() -> None:
    status = ["docker", "inspect", "--format", "{{.State.Status}}", "box1"]
    lab = read({"perfbisect_power": {"status": status}, "ansible_become_password": VAULT, "mine": "{{ a }}"})
    (stage,) = lab.testbed("box1").variables.power
    assert list(stage.status) == status  # type: ignore[union-attr]
