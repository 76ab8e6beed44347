"""A host is added to an inventory that people wrote: the same lab plus one, every other line as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from bisector.errors import RequestError
from bisector.schemas.documents.inventory_text import add_host, host_lines, new_inventory

LAB = Path("lab.yml")
NEW = {"ansible_host": "192.0.2.9", "ansible_port": 22, "perfbisect_power": {"cycle": ["a", "b c"]}}

COMMENTED = """\
# our lab
all:
  children:
    testbeds:
      hosts:
        # the old one
        box1: {ansible_host: 192.0.2.1}   # in rack 3
        box2:
          ansible_host: 192.0.2.2
          perfbisect_power: {cycle: [ipmitool,
            power, cycle]}

        # box3 is broken
      vars:
        ansible_user: root   # everywhere
    builders:
      hosts: {here: {ansible_connection: local}}
"""
TOP_LEVEL = "testbeds:\n    hosts:\n        box1:\n            ansible_host: a"
BLOCK_TEXT = (
    "all:\n children:\n  testbeds:\n   hosts:\n    box1:\n     note: |\n      two\n      lines\nx: 1\n"
)
VAULT = (
    "all:\n  children:\n    testbeds:\n      hosts:\n        box1:\n          secret: !vault |\n"
    "            $ANSIBLE_VAULT;1.1\n    builders:\n      hosts:\n        here:\n"
)


def without_tags(text: str) -> Any:
    return yaml.safe_load(text.replace("!vault ", ""))


@pytest.mark.parametrize("text", [COMMENTED, TOP_LEVEL, BLOCK_TEXT, VAULT])
def test_the_same_lab_plus_one_and_every_line_of_before(text: str) -> None:
    new = add_host(text, LAB, "box9", NEW)
    before, after = without_tags(text), without_tags(new)
    hosts = (after.get("all", {}).get("children") or after)["testbeds"]["hosts"]
    assert hosts.pop("box9") == NEW
    assert after == before
    added = [line for line in new.splitlines() if line not in text.splitlines()]
    assert added[0].strip() == "box9:" and len(added) == len(NEW) + 1
    assert [line for line in new.splitlines() if line not in added] == text.splitlines()


@pytest.mark.parametrize(
    ("text", "behind"),
    [
        ("all:\n  children:\n    builders: # ours\n      hosts:\n        here:\n  vars: {a: 1}\n", "  vars"),
        ("builders:\n    hosts:\n        here:\n            ansible_connection: local", ""),
        ("all:\n  children:\n    builders:\n      hosts: {here: {}}\n\n# the end\n", "# the end"),
    ],
)
def test_the_first_testbed_gets_its_group(text: str, behind: str) -> None:
    new = add_host(text, LAB, "box9", NEW)
    before, after = yaml.safe_load(text), yaml.safe_load(new)
    groups = after.get("all", {}).get("children") or after
    assert groups.pop("testbeds") == {"hosts": {"box9": NEW}}
    assert after == before
    rest = iter(new.splitlines())
    assert all(line in rest for line in text.splitlines()), "each is there still, in its order"
    assert behind in new.partition("cycle")[2]
    twice = yaml.safe_load(add_host(new, LAB, "box10", NEW))
    assert list((twice.get("all", {}).get("children") or twice)["testbeds"]["hosts"]) == ["box9", "box10"]


def test_what_is_added_is_indented_as_its_neighbours() -> None:
    assert "\n        box9:\n            ansible_host: 192.0.2.9\n" in add_host(TOP_LEVEL, LAB, "box9", NEW)


@pytest.mark.parametrize(
    "text",
    [
        '{"all": {"children": {"testbeds": {"hosts": {"box1": {}}}}}}',
        "all: {children: {testbeds: {hosts: {box1: {}}}}}",
        "all:\n  children:\n    testbeds:\n      hosts:\n",
        "all:\n  hosts:\n    box1:\n",
        "all:\n  children: {builders: {hosts: {here: {}}}}\n",
        "- a\n",
        "",
    ],
)
def test_what_cannot_be_done_safely_is_told_with_the_lines(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        add_host(text, LAB, "box9", NEW)
    assert caught.value.details.startswith("box9:\n  ansible_host: 192.0.2.9\n")
    assert "by hand" in caught.value.cure


def test_a_name_that_is_taken() -> None:
    with pytest.raises(RequestError, match="has a testbed 'box2' already"):
        add_host(COMMENTED, LAB, "box2", NEW)


@pytest.mark.parametrize(
    "value", ["no", "1.5", "a: b", "~", "0x10", "", "# x", "1e3", "on", "12:30:45", 5, ["x"]]
)
def test_values_mean_themselves(value: object) -> None:
    assert yaml.safe_load("\n".join(host_lines("h", {"v": value}))) == {"h": {"v": value}}
    read = yaml.safe_load(new_inventory("yes", {"v": value}))
    assert read["all"]["children"]["testbeds"]["hosts"] == {"yes": {"v": value}}


def test_a_host_without_variables() -> None:
    assert yaml.safe_load("\n".join(host_lines("h", {}))) == {"h": {}}
