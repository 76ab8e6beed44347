"""A machine becomes a testbed: how it is booted is found out, and a file that is no lab is not kept."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from bisector.adapters.machine.machine_facts import MachineFacts
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.app.first_settings import parse_address
from bisector.app.machines import add_machine
from bisector.app.wiring import Wiring
from bisector.errors import RequestError
from bisector.schemas.settings import Settings

KEXEC, GRUB = {"tool.kexec": "yes"}, {"tool.grub2-reboot": "yes", "grub_once": "yes"}
BOOTCTL = {"tool.bootctl": "yes", "firmware": "uefi", "loader_entries": "yes"}
INVENTORY = "all:\n  children:\n    testbeds:\n      hosts:\n        box1: {ansible_host: 192.0.2.1}\n"
NEW = {"ansible_host": "192.0.2.9", "perfbisect_boot_method": "kexec"}


@pytest.mark.parametrize(
    ("facts", "method"),
    [
        ({**KEXEC, **GRUB}, "kexec"),
        ({**KEXEC, "kexec_disabled": "1", **GRUB}, "grub"),
        ({**KEXEC, **GRUB, "secure_boot": "on"}, "kexec"),
        ({**GRUB, "secure_boot": "on"}, ""),
        ({**KEXEC, **GRUB, "secure_boot": "on", "lockdown": "none [integrity] confidentiality"}, ""),
        ({**KEXEC, **GRUB, "lockdown": "none [integrity] confidentiality"}, "grub"),
        ({"tool.grub-reboot": "yes"}, ""),
        (BOOTCTL, "systemd-boot"),
        ({**BOOTCTL, "firmware": "bios"}, ""),
        ({}, ""),
    ],
)
def test_the_boot_method_by_what_the_machine_has(facts: dict[str, str], method: str) -> None:
    found = add_machine.suggest(MachineFacts({"release": "6.1", **facts}))
    assert found.method == method and found.why


def wiring(lab: Path | None, tmp_path: Path) -> Wiring:
    return Wiring(Settings(lab=lab, state_dir=tmp_path / "state", cache_dir=tmp_path / "cache"))


def test_a_host_is_added_and_the_lab_has_it(tmp_path: Path) -> None:
    lab = tmp_path / "lab.yml"
    lab.write_text(INVENTORY)
    ours = wiring(lab, tmp_path)
    path, text = add_machine.changed_inventory(ours, "box9", NEW)
    assert path == lab and lab.read_text() == INVENTORY
    again = add_machine.write_inventory(ours, path, text, "box9")
    assert [spec.name for spec in again.lab.testbeds] == ["box1", "box9"]
    with pytest.raises(RequestError, match="has a testbed 'box1' already"):
        add_machine.changed_inventory(ours, "box1", NEW)


def test_in_a_folder_it_is_a_file_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    folder.mkdir()
    (folder / "old.yml").write_text(INVENTORY)
    path, text = add_machine.changed_inventory(wiring(folder, tmp_path), "box9", NEW)
    again = add_machine.write_inventory(wiring(folder, tmp_path), path, text, "box9")
    assert path == folder / "box9.yml" and {s.name for s in again.lab.testbeds} == {"box1", "box9"}
    (folder / "here.yml").write_text(BUILDERS)
    for name, says in (("box1", "has a testbed 'box1' already"), ("here", "here.yml is there already")):
        with pytest.raises(RequestError, match=says):
            add_machine.changed_inventory(wiring(folder, tmp_path), name, NEW)


def test_an_inventory_that_is_no_lab_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    lab = tmp_path / "lab.yml"
    lab.write_text(INVENTORY.replace("192.0.2.1", "192.0.2.1, perfbisect_boot_method: floppy"))
    with pytest.raises(RequestError, match="boot_method"):
        add_machine.inventory_to_change(wiring(lab, tmp_path), "box9")


BUILDERS = "all:\n  children:\n    builders:\n      hosts:\n        here: {ansible_connection: local}\n"


def test_the_first_testbed_is_added_to_builders(tmp_path: Path) -> None:
    lab, folder = tmp_path / "lab.yml", tmp_path / "lab"
    folder.mkdir()
    for file in (lab, folder / "old.yml"):
        file.write_text(BUILDERS)
    for inventory in (lab, folder):
        ours = wiring(inventory, tmp_path)
        path, text = add_machine.changed_inventory(ours, "box9", NEW)
        found = add_machine.write_inventory(ours, path, text, "box9").lab
        assert [spec.name for spec in found.testbeds] == ["box9"]
        assert [spec.name for spec in found.builders] == ["here"]


def test_what_is_no_lab_afterwards_is_put_back(tmp_path: Path) -> None:
    lab = tmp_path / "lab.yml"
    lab.write_text(INVENTORY)
    with pytest.raises(RequestError):
        add_machine.write_inventory(wiring(lab, tmp_path), lab, "all: {}\n", "box9")
    assert lab.read_text() == INVENTORY


@pytest.mark.parametrize(
    ("name", "variables", "says"),
    [
        ("a/b", NEW, "not a valid host name"),
        ("..", NEW, "'..' is not a valid host name"),
        ("box9", {**NEW, "perfbisect_boot_method": "floppy"}, "boot_method"),
        ("box9", {**NEW, "perfbisect_cmdline": "quiet"}, "root="),
    ],
)
def test_a_wrong_machine_is_refused_before_anything_is_written(
    tmp_path: Path, name: str, variables: dict[str, str], says: str
) -> None:
    lab = tmp_path / "lab.yml"
    lab.write_text(INVENTORY)
    with pytest.raises(RequestError, match=says):
        add_machine.changed_inventory(wiring(lab, tmp_path), name, variables)


@pytest.mark.parametrize(
    "text",
    [
        "[testbeds]\nbox1 ansible_host=192.0.2.1\n",
        '#!/bin/sh\necho \'{"testbeds": {"hosts": ["box1"]}}\'\n',
    ],
)
def test_an_inventory_that_ansible_reads_and_is_no_yaml_is_refused_at_once(tmp_path: Path, text: str) -> None:
    lab = tmp_path / "hosts"
    lab.write_text(text)
    lab.chmod(0o755 if text.startswith("#!") else 0o644)
    with pytest.raises(RequestError, match="is not written in YAML") as caught:
        add_machine.inventory_to_change(wiring(lab, tmp_path), "box9")
    assert "into a folder" in caught.value.cure


def test_without_an_inventory_of_ones_own_init_makes_one(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no inventory is set") as caught:
        add_machine.changed_inventory(wiring(None, tmp_path), "box9", NEW)
    assert "perfbisect init --testbed ssh --host box9" in caught.value.cure


@pytest.mark.parametrize(("text", "user", "port"), [("ann@box1:2222", "ann", 2222), ("box1", "root", 22)])
def test_a_machine_is_looked_at_as_who_was_named_and_where(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, user: str, port: int
) -> None:
    asked: list[SSHHost] = []

    def connect(host: SSHHost) -> AbstractContextManager[None]:
        asked.append(host)
        return nullcontext()

    facts = MachineFacts({**KEXEC, "release": "6.1", "machine": "R640", "firmware": "uefi", "cmdline": "ro"})
    monkeypatch.setattr("bisector.adapters.system.ssh.SSH", connect)
    monkeypatch.setattr("bisector.adapters.machine.machine_facts.read_machine_facts", lambda *_: facts)
    found = add_machine.look_at(parse_address(text), tmp_path / "key", tmp_path / "known")
    assert asked == [SSHHost("box1", port, user, tmp_path / "key", tmp_path / "known")]
    assert (found.method, found.cmdline, found.machine) == ("kexec", "ro", "R640 UEFI, runs 6.1")
