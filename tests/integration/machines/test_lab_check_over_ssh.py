"""`perfbisect lab check` on a real SSH server, with real Ansible: what is broken there is found and named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bisector.interfaces.cli import run
from tests.support.loopback_sshd import Server, serve


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from serve(tmp_path_factory.mktemp("sshd"))


def checked(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], group: str = "testbeds", **more: Any
) -> dict[str, dict[str, str]]:
    host = server.host
    variables = {
        "ansible_host": host.address,
        "ansible_port": host.port,
        "ansible_ssh_private_key_file": str(host.key),
        **more,
    }
    if group == "testbeds":
        workload = str(tmp_path / "work" / "load")
        variables = {
            "perfbisect_known_hosts": str(host.known_hosts),
            "perfbisect_workdir": workload,
            **variables,
        }
    lab = tmp_path / "lab.yml"
    groups = {"testbeds": {"here": {"perfbisect_kind": "local"}}, group: {"box": variables}}
    children = {name: {"hosts": hosts} for name, hosts in groups.items()}
    lab.write_text(json.dumps({"all": {"children": children}}))
    run(["lab", "check", "--lab", str(lab), "--json"])
    (machine,) = (one for one in json.loads(capsys.readouterr().out) if one["name"].endswith("box"))
    return {check["check"]: check for check in machine["checks"]}


def test_what_the_machine_itself_says(
    server: Server, tmp_path: Path, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = checked(server, tmp_path, capsys, perfbisect_console=["sh", "-c", "echo booted; sleep 60"])
    for name in ("host key", "ssh", "root", "disk /boot", "disk workload", "clock", "python", "console"):
        assert found[name]["result"] == "ok", found[name]
    assert "Ansible runs modules with" in found["python"]["found"]
    assert found["boot"]["result"] == "wrong" and "perfbisect_boot_method" in found["boot"]["cure"]
    assert not (tmp_path / "work").exists()


def test_what_a_builder_itself_says(
    server: Server,
    tmp_path: Path,
    own_folders: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/known_hosts").write_text(server.host.known_hosts.read_text())
    monkeypatch.setenv("HOME", str(home))  # the keys of builders are known there
    folder = tmp_path / "builds"
    found = checked(server, tmp_path, capsys, group="builders", perfbisect_folder=str(folder))
    for name in ("host key", "ssh", "tools", "sandbox", "clock"):
        assert found[name]["result"] == "ok", found[name]
    assert not folder.exists()


def test_a_machine_with_another_host_key(
    server: Server, tmp_path: Path, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other_hosts"
    text = server.host.known_hosts.read_text().split()
    other.write_text(f"{text[0]} {text[1]} AAAAC3NzaC1lZDI1NTE5AAAAI{'A' * 43}\n")
    found = checked(server, tmp_path, capsys, perfbisect_known_hosts=str(other))
    assert found["host key"]["result"] == "wrong" and found["ssh"]["result"] == "not tried"
    assert "another host key" in found["host key"]["found"]
