"""The lab from inventory data: groups, variables, and errors that name host and variable."""

from pathlib import Path
from typing import Any

import pytest

from bisector.errors import RequestError
from bisector.schemas.lab import lab_from_inventory

PLACE = Path("/lab/hosts.yml")


def listing(
    testbed: dict[str, Any] | None = None, builder: dict[str, Any] | None = None, **groups: Any
) -> dict[str, Any]:
    return {
        "_meta": {"hostvars": {"bed": testbed or {}, "maker": builder or {}}},
        "all": {"children": ["testbeds", "builders"]},
        "testbeds": {"hosts": ["bed"]},
        "builders": {"hosts": ["maker"]},
        **groups,
    }


def test_reads_hosts_of_child_groups_once() -> None:
    data = listing(testbeds={"hosts": ["bed"], "children": ["racks"]}, racks={"hosts": ["bed", "maker"]})
    assert [bed.name for bed in lab_from_inventory(data, PLACE).testbeds] == ["bed", "maker"]


def test_how_a_host_is_reached_comes_from_ansibles_variables() -> None:
    data = listing({"ansible_host": "10.0.0.5", "ansible_port": 2222, "ansible_ssh_private_key_file": "/k"})
    reach = lab_from_inventory(data, PLACE).testbed("bed").connection
    assert (reach.address, reach.port, reach.user, reach.key) == ("10.0.0.5", 2222, "root", Path("/k"))


@pytest.mark.parametrize(
    ("variables", "here"),
    [({"ansible_connection": "local"}, {"maker"}), ({"perfbisect_shares_files": True}, set())],
)
def test_a_builder_that_shares_our_files_need_not_be_this_machine(
    variables: dict[str, Any], here: set[str]
) -> None:
    """What an interrupted build left there is looked for over SSH."""
    data = listing({"ansible_connection": "local", "perfbisect_kind": "local"}, variables)
    assert lab_from_inventory(data, PLACE).builders_here == here


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        (
            {"perfbisect_memroy_mb": 1},
            "unknown variable 'perfbisect_memroy_mb'; did you mean 'perfbisect_memory_mb'?",
        ),
        ({"perfbisect_clock": "fast"}, "variable 'perfbisect_clock'"),
        ({"perfbisect_memory_mb": 4}, "variable 'perfbisect_memory_mb'"),
        ({"perfbisect_power": {"on": "ipmitool"}}, "variable 'perfbisect_power.on'"),
        ({"perfbisect_kind": "ssh", "perfbisect_clock": "instructions"}, "needs an emulated guest"),
        ({"perfbisect_kind": "libvirt", "perfbisect_boot_method": "kexec"}, "booted directly"),
        ({"perfbisect_kind": "ssh", "perfbisect_cmdline": "quiet"}, "needs root="),
    ],
)
def test_mistakes_name_host_and_variable(variables: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestError) as caught:
        lab_from_inventory(listing(variables), PLACE)
    assert caught.value.message.startswith("/lab/hosts.yml: host 'bed': ")
    assert words in caught.value.message


def test_a_lab_without_testbeds_is_refused() -> None:
    data = {"_meta": {"hostvars": {}}, "all": {}, "testbed": {"hosts": ["bed"]}}
    with pytest.raises(RequestError, match="'testbeds' has no host; did you mean 'testbed'"):
        lab_from_inventory(data, PLACE)


def test_unknown_names_are_told_with_the_known_ones() -> None:
    lab = lab_from_inventory(listing(), PLACE)
    with pytest.raises(RequestError, match="no testbed 'bde'; did you mean 'bed'"):
        lab.testbed("bde")
    with pytest.raises(RequestError, match="no builder 'here'"):
        lab.builder("here")
