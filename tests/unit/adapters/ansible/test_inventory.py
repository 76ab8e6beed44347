"""How a lab is read and remembered, with a fake `ansible-inventory`. See also integration/test_ansible.py."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.ansible import inventory
from bisector.adapters.ansible.inventory import read_lab
from bisector.adapters.system.command import CompletedCommand
from bisector.errors import InfrastructureError, RequestError
from bisector.schemas.lab import Lab


def listing(bed: str) -> dict[str, Any]:
    """Return what Ansible says of a lab with one guest, and a builder here."""
    variables = {bed: {"perfbisect_kind": "libvirt"}, "here": {"ansible_connection": "local"}}
    return {
        "_meta": {"hostvars": variables},
        "testbeds": {"hosts": [bed]},
        "builders": {"hosts": ["here"]},
    }


class FakeAnsible:
    """Stands in for `ansible-inventory`; `calls` counts how often it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        self.code, self.output = 0, json.dumps(listing("bed"), indent=1)
        monkeypatch.setattr(inventory, "run_command", self.run)

    def run(self, command: list[object], **_: object) -> CompletedCommand:
        self.calls += 1
        return CompletedCommand(tuple(map(str, command)), self.code, self.output)


@pytest.fixture
def ansible(monkeypatch: pytest.MonkeyPatch) -> FakeAnsible:
    return FakeAnsible(monkeypatch)


def names(lab: Lab) -> list[str]:
    return [bed.name for bed in lab.testbeds]


@pytest.mark.parametrize("folder", [False, True])
def test_a_change_of_any_file_of_a_lab_is_seen(tmp_path: Path, ansible: FakeAnsible, folder: bool) -> None:
    """Else a bisection would go on with addresses and power switches of machines that are others now."""
    lab = tmp_path / "lab"
    (lab / "group_vars").mkdir(parents=True)
    (lab / "lab.yml").write_text("all: {}\n")
    variables = lab / "group_vars" / "testbeds.yml"
    variables.write_text("a: 1\n")
    named, cache = (lab if folder else lab / "lab.yml"), tmp_path / "cache"
    for calls in (1, 1):
        assert names(read_lab(named, cache)) == ["bed"]
        assert ansible.calls == calls
    variables.write_text("a: 22\n")
    ansible.output = json.dumps(listing("other"), indent=1)
    assert names(read_lab(named, cache)) == ["other"]
    assert {path.stat().st_mode & 0o077 for path in cache.iterdir()} == {0}, "it may hold passwords"
    info = variables.stat()
    os.utime(variables, ns=(info.st_atime_ns, info.st_mtime_ns + 10))  # of one length, a moment later
    read_lab(named, cache)
    (lab / "group_vars" / "builders.yml").write_text("b: 1\n")
    read_lab(named, cache)
    assert ansible.calls == 4


def test_what_an_earlier_version_kept_for_everybody_is_the_owners(
    tmp_path: Path, ansible: FakeAnsible
) -> None:
    lab, cache = tmp_path / "lab.yml", tmp_path / "cache"
    lab.write_text("all: {}\n")
    read_lab(lab, cache)
    (kept,) = cache.iterdir()
    older = cache / "inventory-0123.json"  # of the inventory as it was before a change
    older.write_text("{}")
    kept.chmod(0o644)
    older.chmod(0o644)
    read_lab(lab, cache)
    assert ansible.calls == 1
    assert {path.stat().st_mode & 0o777 for path in (kept, older)} == {0o600}


def test_only_the_newest_answers_are_kept(
    tmp_path: Path, ansible: FakeAnsible, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inventory, "_KEPT_ANSWERS", 3)
    lab, cache = tmp_path / "lab.yml", tmp_path / "cache"
    kept: list[set[str]] = []
    for number in range(6):
        lab.write_text(f"all: {{}}  # {'x' * number}\n")
        read_lab(lab, cache)
        for age, path in enumerate(sorted(cache.iterdir(), key=lambda one: one.stat().st_mtime_ns)):
            os.utime(path, (number * 100 + age, number * 100 + age))
        kept.append({path.name for path in cache.iterdir()})
    assert [len(one) for one in kept] == [1, 2, 3, 3, 3, 3]
    assert len(kept[-1] & kept[-2]) == 2, "the oldest goes"
    assert ansible.calls == 6


def test_a_program_is_asked_each_time(tmp_path: Path, ansible: FakeAnsible) -> None:
    program = tmp_path / "lab.yml"  # it may be called so, and is no YAML
    program.write_text("#!/bin/sh\n: [\n")
    program.chmod(0o755)
    for calls in (1, 2):
        read_lab(program, tmp_path / "cache")
        assert ansible.calls == calls


def test_what_can_not_be_read_to_its_end_is_refused_before_ansible_waits_for_it(
    tmp_path: Path, ansible: FakeAnsible, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inventory, "MAX_JSON_BYTES", 1000)
    large = tmp_path / "lab.ini"
    large.write_text("#" * 1001)
    with pytest.raises(RequestError, match=r"lab\.ini"):
        read_lab(large)
    assert ansible.calls == 0


def test_why_an_inventory_is_not_seen_is_said(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(RequestError, match="loop: cannot be read: Too many levels"):
        read_lab(tmp_path / "loop")
    with pytest.raises(RequestError, match="absent: no such inventory"):
        read_lab(tmp_path / "absent")


def test_a_broken_file_beside_the_inventory_is_named_with_its_line(
    tmp_path: Path, ansible: FakeAnsible
) -> None:
    """Ansible would leave it out, and measure without what it sets."""
    (tmp_path / "lab.ini").write_text("[testbeds]\nbed\n")
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "host_vars" / "bed.yml").write_text("perfbisect_power:\n  on: [\n")
    with pytest.raises(RequestError, match=r"bed\.yml:\d+: not valid YAML"):
        read_lab(tmp_path / "lab.ini")
    (tmp_path / "host_vars" / "bed.yml").write_text("$ANSIBLE_VAULT;1.1;AES256\n: [\n")
    assert names(read_lab(tmp_path / "lab.ini")) == ["bed"]


@pytest.mark.parametrize(
    ("code", "output", "error", "message"),
    [
        (1, "Failed to parse inventory with 'a.b.yaml' plugin: no: x", RequestError, "inventory: no: x"),
        (0, "[WARNING]: Skipping unexpected key (hots) in group (all)\n{\n}", RequestError, "key (hots)"),
        (0, "usage", InfrastructureError, "printed no inventory"),
        (0, '{\n"_meta": 3\n}', InfrastructureError, "printed no inventory"),
        (0, '{\n"_meta": {"hostvars": {"a": 1}}\n}', InfrastructureError, "printed no inventory"),
        (0, '{\n"_meta": {"hostvars": {}}, "all": {"hosts": 1}\n}', InfrastructureError, "printed no inv"),
    ],
)
def test_what_ansible_refuses_is_the_users_and_what_is_no_answer_is_ansibles(
    tmp_path: Path, ansible: FakeAnsible, code: int, output: str, error: type[Exception], message: str
) -> None:
    (tmp_path / "lab.ini").write_text("bed\n")
    ansible.code, ansible.output = code, output
    with pytest.raises(error) as caught:
        read_lab(tmp_path / "lab.ini", tmp_path / "cache")
    assert message in str(caught.value)
    assert not (tmp_path / "cache").exists()


def test_a_number_that_is_none_is_of_its_host_and_variable(tmp_path: Path, ansible: FakeAnsible) -> None:
    (tmp_path / "lab.ini").write_text("[testbeds]\nbed\n")
    for place, said in (
        (
            {"_meta": {"hostvars": {"bed": {"a": {"b": math.nan}}}}},
            "host 'bed': variable 'a.b': nan is no finite",
        ),
        (
            {"_meta": {"hostvars": {}}, "all": {"hosts": [math.inf]}},
            "as Ansible reads it:2: key 'all.hosts.0'",
        ),
    ):
        ansible.output = "{\n" + json.dumps(place)[1:-1] + "\n}"
        with pytest.raises(RequestError) as caught:
            read_lab(tmp_path / "lab.ini")
        assert said in caught.value.message


@pytest.mark.parametrize("name", ["bo\\nx\\e[31m", "a b", "b[1"])
def test_a_key_that_names_no_host_is_told_before_what_ansible_says_of_it(
    tmp_path: Path, ansible: FakeAnsible, name: str
) -> None:
    ansible.code, ansible.output = 1, "not enough values to unpack"
    path = tmp_path / "lab.yml"
    path.write_text(f'testbeds:\n  hosts:\n    good[01:16:2].x: {{}}\n    "{name}": {{}}\n')
    with pytest.raises(RequestError, match=r"lab\.yml:4: '.*' is not a valid host name") as caught:
        read_lab(path)
    assert "\x1b" not in caught.value.message
    path.write_text("testbeds:\n  hosts:\n    good[01:16:2].x: {}\n")
    with pytest.raises(RequestError, match="Ansible cannot read this inventory"):
        read_lab(path)
