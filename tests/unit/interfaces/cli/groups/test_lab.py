"""`perfbisect lab`: the machines of an inventory, and whether they answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bisector.adapters.machine import lab_check
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError
from bisector.interfaces.cli import run
from bisector.schemas.lab import lab_from_inventory

INVENTORY = {
    "_meta": {
        "hostvars": {
            "guest": {"perfbisect_kind": "libvirt", "perfbisect_clock": "instructions"},
            "box": {"ansible_host": "192.0.2.10"},
            "here": {"ansible_connection": "local"},
        }
    },
    "testbeds": {"hosts": ["guest", "box"]},
    "builders": {"hosts": ["here", "box"]},
}


@pytest.fixture(autouse=True)
def lab(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = lab_from_inventory(INVENTORY, Path("lab.yml"))
    monkeypatch.setattr(Wiring, "lab", found)


def test_the_list_has_testbeds_and_builders(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "list"]) == 0
    assert capsys.readouterr().out == (
        "NAME   ROLE     KIND     CLOCK         ADDRESS\n"
        "guest  testbed  libvirt  instructions  this machine\n"
        "box    testbed  ssh      auto          192.0.2.10\n"
        "here   builder  local                  this machine\n"
        "box    builder  ssh                    192.0.2.10\n"
        "from lab.yml\n"
    )
    assert run(["lab", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["inventory"] == "lab.yml"
    assert [machine["name"] for machine in listed["machines"]] == ["guest", "box", "here", "box"]


def test_a_machine_that_does_not_answer_is_exit_code_3(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def dead() -> None:
        raise InfrastructureError("192.0.2.10 does not answer", cure="switch it on")

    checks = [("guest", lambda: None)]
    monkeypatch.setattr(lab_check, "lab_checks", lambda lab, cache_dir: checks)
    assert run(["lab", "check"]) == 0
    assert capsys.readouterr().out.startswith("guest: answers (")
    checks.append(("box", dead))
    assert run(["lab", "check", "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["ok"], one["wrong"]) for one in found] == [
        ("guest", True, ""),
        ("box", False, "192.0.2.10 does not answer"),
    ]
