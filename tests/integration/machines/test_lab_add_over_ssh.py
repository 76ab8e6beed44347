"""`perfbisect lab add` with a real SSH server: host key, boot method, inventory, check."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from bisector.adapters.system.ssh import SSHRefused, fetch_host_key
from bisector.adapters.system.ssh_keys import is_pinned, pin_host_key
from bisector.app.machines import check_machines
from bisector.app.wiring import Wiring
from bisector.interfaces.cli import run
from bisector.model.machines.lab_findings import LabFinding, MachineFindings
from tests.support.loopback_sshd import Server, serve

INVENTORY = "# ours\nall:\n  children:\n    testbeds:\n      hosts:\n        old: {ansible_host: 192.0.2.1}\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from serve(tmp_path_factory.mktemp("sshd"))


@pytest.fixture
def lab(tmp_path: Path, own_folders: Path) -> Path:
    path = tmp_path / "lab.yml"
    path.write_text(INVENTORY)
    return path


def command(server: Server, lab: Path, *more: str) -> list[str]:
    host = server.host
    where = ["--host", f"{host.user}@{host.address}:{host.port}", "--key", str(host.key)]
    return ["lab", "add", "box", *where, "--boot", "grub", "--no-check", "--lab", str(lab), *more]


def test_the_key_that_a_server_shows(server: Server, tmp_path: Path) -> None:
    host, file = server.host, tmp_path / "new" / "known_hosts"
    key = fetch_host_key(host.address, host.port)
    assert f"{key.name} {key.kind} {key.text}" == host.known_hosts.read_text().strip()
    assert not is_pinned(file, host.address, host.port)
    pin_host_key(file, key)
    assert is_pinned(file, host.address, host.port) and not is_pinned(file, host.address, 22)
    with pytest.raises(SSHRefused, match="shows no host key"):
        fetch_host_key("127.0.0.1", 1)


def test_an_unknown_key_is_trusted_by_its_fingerprint_only(
    server: Server, lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "known"
    words = command(server, lab, "--known-hosts", str(file), "--yes")
    key = fetch_host_key(server.host.address, server.host.port)
    assert run(words) == 1
    assert f"add --fingerprint {key.fingerprint}" in capsys.readouterr().err
    assert run([*words, "--fingerprint", "SHA256:AAAA"]) == 1
    assert "shows another host key" in capsys.readouterr().err
    assert not file.exists() and lab.read_text() == INVENTORY
    assert run([*words, "--fingerprint", key.fingerprint, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["variables"]["perfbisect_boot_method"] == "grub" and made["written"]
    assert made["variables"]["perfbisect_known_hosts"] == str(file), "where checks and bisections look"
    assert lab.read_text().startswith(INVENTORY) and "        box:\n" in lab.read_text()


def test_a_key_is_not_pinned_for_who_says_no_or_tries_only(
    server: Server,
    lab: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "known"
    words = command(server, lab, "--known-hosts", str(file))
    typed = io.StringIO("n\n")
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", typed)
    assert run(words) == 1
    assert "the host key of 127.0.0.1 is not trusted" in capsys.readouterr().err
    key = fetch_host_key(server.host.address, server.host.port)
    bare = key.fingerprint.removeprefix("SHA256:")
    assert run([*words, "--yes", "--fingerprint", bare, "--dry-run"]) == 1
    assert f"add that line to {file}" in capsys.readouterr().err
    assert not file.exists() and lab.read_text() == INVENTORY


def test_a_machine_in_which_the_check_finds_something_wrong_is_added_with_exit_code_3(
    server: Server, lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checked: list[list[str]] = []

    def wrong(wiring: Wiring, progress: object, names: list[str]) -> list[MachineFindings]:
        assert "box" in [spec.name for spec in wiring.lab.testbeds]
        checked.append(names)
        return [MachineFindings("testbed box", (LabFinding("boot", "wrong", "no GRUB", "install it"),))]

    monkeypatch.setattr(check_machines, "check_machines", wrong)
    words = command(server, lab, "--known-hosts", str(server.host.known_hosts), "--yes")
    words.remove("--no-check")
    assert run([*words, "--dry-run"]) == 0
    assert checked == []
    capsys.readouterr()
    assert run(words) == 3
    shown = capsys.readouterr()
    assert checked == [["testbed box"]] and "'box' is added" in shown.err
    assert "no GRUB; cure: install it" in shown.out
    assert "        box:\n" in lab.read_text()


def test_answers_on_a_terminal(
    server: Server, lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "known"
    typed = io.StringIO("y\n{cycle: [pdu, '7']}\ncat /dev/ttyS1\nroot=/dev/sda2\n")
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", typed)
    assert run(command(server, lab, "--known-hosts", str(file))) == 0
    text = lab.read_text()
    assert 'perfbisect_power: {"cycle": ["pdu", "7"]}' in text
    assert 'perfbisect_console: ["cat", "/dev/ttyS1"]' in text and "root=/dev/sda2" in text
    assert is_pinned(file, server.host.address, server.host.port)


def test_a_wrong_answer_is_asked_for_again_at_its_question(
    server: Server, lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not behind the last one, where all that was typed is lost."""
    words = command(server, lab, "--known-hosts", str(server.host.known_hosts))
    words.remove("box")
    ipmi = "{kind: ipmi, address: 192.0.2.2, user: me, %s}"
    typed = io.StringIO(
        "old\na/b\nbox\n"
        f"pdu\n{ipmi % 'password: canary'}\n{ipmi % 'password_env: BMC'}\n"
        "{kind: soll}\n{kind: sol}\nquiet\nroot=/dev/sda2\n"
    )
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", typed)
    assert run(words) == 0
    said = capsys.readouterr().err
    for part in (
        "has a testbed 'old' already",
        "not a valid host name",
        "'pdu' is not a mapping",
        "no password",
    ):
        assert part in said
    assert "'perfbisect_console.kind'" in said and "needs root=" in said and "canary" not in said
    text = lab.read_text()
    assert '"password_env": "BMC"' in text and '{"kind": "sol"}' in text and "root=/dev/sda2" in text


def test_a_name_that_is_taken_is_refused_before_the_machine_is_asked(
    server: Server, lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command(server, lab, "--yes", "--known-hosts", str(lab.parent / "none"))
    assert run(["old" if word == "box" else word for word in words]) == 1
    assert "NAME: " in (said := capsys.readouterr().err) and "has a testbed 'old' already" in said


def test_a_check_that_is_stopped_leaves_a_machine_that_is_said_to_be_added(
    server: Server, lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(check_machines, "check_machines", stopped)
    words = command(server, lab, "--known-hosts", str(server.host.known_hosts), "--yes")
    words.remove("--no-check")
    assert run(words) == 130
    assert f"{lab}: 'box' is added\n" in capsys.readouterr().err
    assert "        box:\n" in lab.read_text()


NETBOOT = "{folder: /srv/tftp, url: 'tftp://192.0.2.1', mac: '52:54:00:12:34:56'}"
REDFISH = "{kind: redfish, url: 'https://192.0.2.2', user: lab, password_env: BMC_PASSWORD}"


def test_a_machine_that_boots_from_the_network(
    server: Server, lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command(server, lab, "--known-hosts", str(server.host.known_hosts), "--power", REDFISH)
    words = ["pxe" if word == "grub" else word for word in words]
    assert run([*words, "--yes"]) == 1
    assert "add --netboot: Where a network boot finds its files" in capsys.readouterr().err
    assert run([*words, "--yes", "--netboot", "{folder: /srv/tftp}"]) == 1
    assert "url" in capsys.readouterr().err
    assert lab.read_text() == INVENTORY
    assert run([*words, "--yes", "--netboot", NETBOOT, "--dry-run"]) == 0
    typed = io.StringIO(f"{NETBOOT}\n\n\n")
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", typed)
    assert run(words) == 0
    assert 'perfbisect_netboot: {"folder": "/srv/tftp", "url": "tftp://192.0.2.1"' in lab.read_text()


def test_a_boot_method_that_there_is_not(
    server: Server, lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command(server, lab, "--known-hosts", str(server.host.known_hosts), "--yes")
    assert run(["lilo" if word == "grub" else word for word in words]) == 1
    said = capsys.readouterr().err
    assert "--boot: unknown value 'lilo'" in said and "write one of kexec, grub, systemd-boot, pxe" in said
    assert lab.read_text() == INVENTORY


def test_a_dry_run_writes_nothing(server: Server, lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = command(server, lab, "--known-hosts", str(server.host.known_hosts), "--yes", "--dry-run")
    assert run(words) == 0
    assert f"--- {lab}\n{INVENTORY}        box:\n" in capsys.readouterr().out
    assert lab.read_text() == INVENTORY


def test_without_a_terminal_and_without_yes(
    server: Server, lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert run(command(server, lab)) == 1
    assert "add --yes, and --host" in capsys.readouterr().err
