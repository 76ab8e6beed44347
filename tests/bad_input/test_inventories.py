"""Inventories that cannot be: broken YAML, wrong variables of hosts, and what Ansible itself refuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.ansible import inventory
from bisector.errors import InfrastructureError, RequestError
from bisector.schemas.connection import ConnectionVariables
from bisector.schemas.lab import BuilderVariables
from bisector.schemas.machine.testbed_variables import TestbedVariables
from tests.bad_input.broken_documents import ANY_LANGUAGE, YAML, broken
from tests.bad_input.harness import Row, check_answer, check_row, each_row
from tests.bad_input.wrong_numbers import number_keys

FILE = "own.yml"
SHOW = ["lab", "list", "--lab", FILE]

OUTSIDE = {
    "perfbisect_memory_mb": (63, 1 << 25),
    "perfbisect_cpus": (0, 8193),
    "perfbisect_boot_timeout": (0, 3601),
    "perfbisect_jobs": (0, 4097),
    "perfbisect_power.port": (0, 65536),
    "perfbisect_console.port": (0, 65536),
    "ansible_port": (0, 65536),
}
"""Number of a host -> one below and one above its range."""

BESIDE: Mapping[str, Mapping[str, Any]] = {
    "perfbisect_power": {"kind": "ipmi", "address": "bmc", "user": "admin", "password_env": "BMC"},
    "perfbisect_console": {"kind": "tcp", "address": "ser2net"},
}
"""What else a mapping needs in which a number is."""

NO_NUMBERS: Mapping[str, Any] = {
    "text": "many",
    "a list": [1],
    "a mapping": {"a": 1},
    "nothing": None,
    "huge": 10**90,
    "not a number as text": "nan",
    "infinity as text": "inf",
}

WRONG: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "an unknown variable": (
        {"perfbisect_memroy_mb": 512},
        "unknown variable 'perfbisect_memroy_mb'; did you",
    ),
    "a variable of 10,000 characters": ({"perfbisect_" + "x" * 10_000: 1}, "unknown variable"),
    "a template": ({"ansible_host": "{{ nope }}"}, "'ansible_host': is a template, which perfbisect"),
    "an unknown kind": ({"perfbisect_kind": "cloud"}, "variable 'perfbisect_kind': must be 'libvirt'"),
    "an unknown clock": ({"perfbisect_clock": 3}, "variable 'perfbisect_clock'"),
    "a command as text": ({"perfbisect_power": {"on": "ipmitool"}}, "'perfbisect_power.on': must be a list"),
    "a command with a line break": ({"perfbisect_power": {"on": ["a\nb"]}}, "'perfbisect_power.on.0'"),
    "an unknown command": (
        {"perfbisect_power": {"cycles": ["x"]}},
        "'perfbisect_power.cycles': is unknown to the kind 'command'; did you mean 'cycle'?",
    ),
    "power as text": ({"perfbisect_power": "on"}, "'perfbisect_power': must be a mapping"),
    "an unknown kind of power": (
        {"perfbisect_power": [{"cycle": ["x"]}, {"kind": "impi"}]},
        "'perfbisect_power.1.kind': must be one of 'command', 'ipmi', 'redfish' (got 'impi')",
    ),
    "a kind that is no name": (
        {"perfbisect_power": {"kind": [1]}},
        "'perfbisect_power.kind': must be one of",
    ),
    "a BMC without an address": (
        {"perfbisect_power": {"kind": "ipmi", "user": "a", "password_env": "X"}},
        "the variable 'perfbisect_power.address' is missing",
    ),
    "a BMC that is an option": (
        {"perfbisect_power": {"kind": "ipmi", "address": "-x", "user": "a", "password_env": "X"}},
        "'perfbisect_power.address': must be a host's name or address",
    ),
    "a BMC without a password": (
        {"perfbisect_power": {"kind": "ipmi", "address": "bmc", "user": "a"}},
        "one of 'password_file' and 'password_env' is needed",
    ),
    "a BMC over plain HTTP": (
        {"perfbisect_power": {"kind": "redfish", "url": "http://bmc", "user": "a", "password_env": "X"}},
        "'perfbisect_power.url': a password must not cross a network without TLS",
    ),
    "a console as text": ({"perfbisect_console": "cat"}, "'perfbisect_console': must be a command as a list"),
    "a console of no BMC": ({"perfbisect_console": {"kind": "sol"}}, "needs one of the kind 'ipmi'"),
    "an unknown kind of console": (
        {"perfbisect_console": {"kind": "telnet"}},
        "'perfbisect_console.kind': must be one of 'command', 'sol', 'tcp', 'netconsole' (got 'telnet')",
    ),
    "the whole root": ({"perfbisect_workdir": "/"}, "'perfbisect_workdir': must be the path of a folder"),
    "all programs": ({"perfbisect_workdir": "/usr"}, "two levels deep"),
    "a folder that is relative": ({"perfbisect_workdir": "work/x"}, "two levels deep"),
    "a disk that is no device": ({"perfbisect_block_device": "sda"}, "must be a path below /dev"),
    "a disk of a guest": (
        {"perfbisect_kind": "libvirt", "perfbisect_block_device": "/dev/sda"},
        "gets a disk of its own",
    ),
    "instructions of a machine": ({"perfbisect_clock": "instructions"}, "needs an emulated guest"),
    "no root": ({"perfbisect_cmdline": "quiet"}, "needs root="),
    "two lines for a kernel": ({"perfbisect_cmdline": "root=a\nb"}, "text of one line"),
    "CPUs backwards": ({"perfbisect_environment": {"irqs": "3-1"}}, "in ascending order"),
    "an unknown setting": ({"perfbisect_environment": {"govenor": "x"}}, "did you mean 'governor'?"),
    "an address of numbers": ({"ansible_host": 10.1}, "variable 'ansible_host': must be text"),
    "a user with a line break": (
        {"ansible_user": "a\nb"},
        "variable 'ansible_user': must be text of one line",
    ),
    **{
        f"guests of {uri}": ({"perfbisect_kind": "libvirt", "perfbisect_libvirt_uri": uri}, words)
        for uri, words in {
            "qemu+ssh://h:99999/system": "'perfbisect_libvirt_uri': has a port above 65535",
            "qemu+ssh://h:0/system": "'perfbisect_libvirt_uri': must be qemu+ssh://[root@]HOST[:PORT]/system",
            "qemu+ssh://[1]/system": "'perfbisect_libvirt_uri': has a port above 65535, or brackets without",
            "qemu+ssh://me@h/system": "'perfbisect_libvirt_uri': must be qemu+ssh://[root@]HOST",
        }.items()
    },
    "host keys of nobody": (
        {"perfbisect_known_hosts": "~no-such-user/known_hosts"},
        "'perfbisect_known_hosts': there is no such user's home",
    ),
    "a served folder of nobody": (
        {
            "perfbisect_boot_method": "pxe",
            "perfbisect_netboot": {
                "folder": "~no-such-user/t",
                "url": "tftp://h",
                "mac": "52:54:00:12:34:56",
            },
        },
        "'perfbisect_netboot.folder': there is no such user's home",
    ),
    "a key of nobody": ({"ansible_ssh_private_key_file": "~no-such-user/k"}, "no such user's home"),
}

NAMES = {
    "a slash": "a/b",
    "all above": "..",
    "a space": "a b",
    "a line break": "a\nb",
    "an escape sequence": "\x1b]0;x\x07",
    "an option": "-oProxyCommand=sh",
    "10,000 characters": "h" * 10_000,
    "no UTF-8": "a\udcff",
    "nothing": "",
}
"""What no host may be called."""


def lab_of(host: str, variables: Mapping[str, Any]) -> str:
    """Return what Ansible prints for a lab with one host that measures and builds."""
    groups = {group: {"hosts": [host]} for group in ("testbeds", "builders")}
    return json.dumps({"_meta": {"hostvars": {host: variables}}, **groups})


def with_value(variable: str, value: object) -> Mapping[str, Any]:
    """Return the variables of a host with one value; a dot leads into a mapping."""
    name, _, key = variable.partition(".")
    return {name: {**BESIDE[name], key: value}} if key else {name: value}


SECRET = "s3cret-of-a-bmc"
BMC = {"kind": "ipmi", "address": "bmc", "user": "a", "password_env": "X"}
WITH_SECRET: Mapping[str, Mapping[str, Any]] = {
    "a password": {"perfbisect_power": {**BMC, "password": SECRET}},
    "a password as its variable": {"perfbisect_power": {**BMC, "password_env": f"{SECRET}!"}},
    "a password as its file": {"perfbisect_power": {**BMC, "password_env": None, "password_file": SECRET}},
    "an address with a password": {
        "perfbisect_power": {"kind": "redfish", "url": f"https://a:{SECRET}@bmc", "user": "a"}
    },
    "a command as text": {"perfbisect_power": {"on": f"ipmitool -U a -P {SECRET} power on"}},
    "a command of two lines": {"perfbisect_power": {"on": ["sh", "-c", f"true\nipmitool -P {SECRET}"]}},
    "a console's command": {"perfbisect_console": {"command": f"ipmitool -P {SECRET} sol activate"}},
    "a console's line": {"perfbisect_console": f"ipmitool -P {SECRET} sol activate"},
}
"""Wrong variables that hold a password."""


@each_row([Row(name, SHOW, ["host 'bed': variable 'perfbisect_"]) for name in WITH_SECRET])
def test_a_refusal_never_shows_a_password(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = json.loads(lab_of("bed", WITH_SECRET[row.name]))
    (place / FILE).write_text("all: {}\n")
    monkeypatch.setattr(inventory, "_run_ansible_inventory", lambda path: hosts)
    with pytest.raises(RequestError) as caught:
        inventory.read_lab(place / FILE)
    check_row(row, place, capsys, monkeypatch)
    assert SECRET not in f"{caught.value.message}{caught.value.details}{caught.value.cure}"


TABLE = {
    **{name: ("bed", variables, [words]) for name, (variables, words) in WRONG.items()},
    **{f"a name: {name}": (host, {}, ["is not a valid host name"]) for name, host in NAMES.items()},
    **{
        f"{variable}: {name}": ("bed", with_value(variable, value), [f"bed': variable '{variable}': must be"])
        for variable, (below, above) in OUTSIDE.items()
        for name, value in {"below": below, "above": above, **NO_NUMBERS}.items()
        if not (variable == "perfbisect_jobs" and value is None)
    },
}
"""Name of a row -> host, its variables, words of the answer."""


@each_row([Row(name, SHOW, says) for name, (_, _, says) in TABLE.items()])
def test_a_host_is_refused(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    host, variables, _ = TABLE[row.name]
    hosts = json.loads(lab_of(host, variables))
    (place / FILE).write_text("all: {}\n")
    monkeypatch.setattr(inventory, "_run_ansible_inventory", lambda path: hosts)
    check_row(row, place, capsys, monkeypatch)


@each_row(
    [*broken("inventory", FILE, SHOW, ANY_LANGUAGE, {n: row for n, row in YAML.items() if "mega" not in n})]
)
def test_a_broken_file_is_refused_before_ansible_sees_it(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(inventory, "_run_ansible_inventory")
    check_row(row, place, capsys, monkeypatch)


def test_every_number_of_a_host_has_its_rows() -> None:
    own = {
        f"perfbisect_{key}" for model in (TestbedVariables, BuilderVariables) for key in number_keys(model)
    }
    assert own | number_keys(ConnectionVariables) == set(OUTSIDE)


ANSIBLE = {
    "a list of hosts": (
        "own.yml",
        "all:\n  children:\n    testbeds:\n      hosts: [a]\n",
        ['Invalid "hosts" entry for "testbeds"'],
    ),
    "a key that Ansible skips": (
        "own.yml",
        "testbeds:\n  hosts: {a: {}}\n  host: {}\n",
        ["Skipping unexpected key (host)"],
    ),
    "a program that fails": (
        "own.sh",
        "#!/bin/sh\necho no database >&2; exit 3\n",
        ["exit code 3", "no database"],
    ),
}
"""Name of a row -> file, its text, words of the answer. A run of Ansible takes 2 s, so they are few."""


@each_row(
    [
        Row(name, ["lab", "list", "--lab", file], [file, *says], {file: text})
        for name, (file, text, says) in ANSIBLE.items()
    ]
)
def test_ansibles_own_reason_is_told(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for file, text in row.files.items():
        (place / file).write_text(str(text))
        (place / file).chmod(0o755 if file.endswith(".sh") else 0o644)
    check_row(row, place, capsys, monkeypatch)


def test_a_program_that_never_answers_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "own.sh"
    program.write_text("#!/bin/sh\nsleep 98764\n")
    program.chmod(0o755)
    monkeypatch.setattr(inventory, "TIMEOUT_SECONDS", 3.0)
    with pytest.raises(
        InfrastructureError, match=r"own\.sh: Ansible does not read this.*within 3 s"
    ) as caught:
        inventory.read_lab(program, tmp_path / "cache")
    assert caught.value.cure


def test_a_damaged_answer_that_was_kept_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.yml").write_text("all: {}\n")
    answers = [json.loads(lab_of("bed", {"perfbisect_kind": "local"}))]
    monkeypatch.setattr(inventory, "_run_ansible_inventory", lambda path: answers[0])
    first = inventory.read_lab(tmp_path / "own.yml", tmp_path)
    (kept,) = tmp_path.glob("inventory-*.json")
    for damaged in (
        "",
        "{",
        "[]",
        '{"_meta": 3}',
        '{"_meta": {"hostvars": {"a": 1}}}',
        '{"_meta": {}, "all": 3}',
    ):
        kept.write_text(damaged)
        assert inventory.read_lab(tmp_path / "own.yml", tmp_path) == first
    answers.clear()
    assert inventory.read_lab(tmp_path / "own.yml", tmp_path) == first, "written anew"


def test_a_name_that_is_not_utf8(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RequestError) as caught:
        inventory.read_lab(place / "a\udcff.yml")
    assert "\\udcff" in caught.value.message
    check_answer(f"error: {caught.value.message}\ncure: {caught.value.cure}\n")
