"""Passwords of power switches are canaries: a search that switches a machine leaves them nowhere."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.lab.canary import CommandLineWatch, files_with
from tests.support.installed_command import perfbisect
from tests.support.kernels.kernel_packages import kernel_folder
from tests.support.loopback_sshd import keygen
from tests.support.servers.bmc_simulators import ipmi_simulator
from tests.support.servers.free_port import free_port

BY_ENVIRONMENT, BY_FILE, BY_WORD = "canary-3c7a9d01", "canary-88f0b2e4", "canary-d41a6c57"
"""Of 15 characters: ipmi_sim takes no more than 16."""

HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK3yd5ZDodGw4+ZOuhgiOR5ybzLoeGszaoiu2g+fpmSP"

SECRETS = (BY_ENVIRONMENT, BY_FILE, BY_WORD)

pytestmark = [
    pytest.mark.skipif(
        shutil.which("ipmi_sim") is None or shutil.which("ipmitool") is None,
        reason="needs the packages openipmi and ipmitool",
    ),
    pytest.mark.timeout(600),
]


@pytest.mark.parametrize("right", [True, False], ids=["accepted", "refused"])
def test_a_search_on_a_machine_that_never_answers_shows_no_password(tmp_path: Path, right: bool) -> None:
    """The BMC switches it, where that lets us in, and in vain: then each stage behind it is asked."""
    state, asked = tmp_path / "state", tmp_path / "asked"
    state.mkdir()
    asked.mkdir()
    (asked / "password").write_text(f"{BY_FILE}\n")
    (asked / "password").chmod(0o600)
    keygen(asked / "key")
    (asked / "known_hosts").write_text(f"127.0.0.1 {HOST_KEY}\n")
    for number in (1, 2):
        kernel_folder(tmp_path / "kernels" / f"k{number}", f"6.1.{number}")
    (tmp_path / "kernels" / "kernels.list").write_text("k1\nk2\n")
    with ipmi_simulator(tmp_path / "bmc", BY_ENVIRONMENT if right else "another") as bmc:
        known = {name: value for name, value in bmc.variables.items() if name != "password_file"}
        strip = [
            "sh",
            "-c",
            f"touch {asked}/strip; echo no answer of the strip; exit 1",
            "strip",
            "-P",
            BY_WORD,
        ]
        stages = [
            {**known, "password_env": "CANARY"},
            {**known, "password_file": str(asked / "password")},
            {"on": strip, "off": strip, "cycle": strip, "status": strip},
        ]
        box = {
            "ansible_host": "127.0.0.1",
            "ansible_port": free_port(),
            "ansible_ssh_private_key_file": str(asked / "key"),
            "perfbisect_kind": "ssh",
            "perfbisect_boot_method": "kexec",
            "perfbisect_known_hosts": str(asked / "known_hosts"),
            "perfbisect_boot_timeout": 2,
            "perfbisect_power": stages,
        }
        builders = {"hosts": {"here": {"ansible_connection": "local"}}}
        children = {"testbeds": {"hosts": {"box1": box}}, "builders": builders}
        lab = asked / "lab.yml"
        lab.write_text(json.dumps({"all": {"children": children}}))
        environment = {
            **os.environ,
            "PERFBISECT_STATE_DIR": str(state),
            "PERFBISECT_CACHE_DIR": str(tmp_path / "cache"),
            "CANARY": BY_ENVIRONMENT,
        }
        kernels = ("--kernels", str(tmp_path / "kernels" / "kernels.list"), "--good", "k1", "--bad", "k2")
        commands = (
            ("start", "--lab", str(lab), *kernels, "--run", "true", "--threshold", "100%"),
            ("report",),
            ("show",),
            ("status",),
            ("report", "--html", str(state / "report.html")),
            ("lab", "check", "--lab", str(lab), "--report", str(state / "checklist.txt")),
            ("--debug", "lab", "power", "box1", "status", "--lab", str(lab)),
            ("testbed", "list", "--lab", str(lab)),
            ("log",),
        )
        with CommandLineWatch([BY_ENVIRONMENT, BY_FILE]) as watch:
            done = [perfbisect(*command, environment=environment, timeout=300) for command in commands]
    said = {
        " ".join(command[:3]): one.stdout + one.stderr for command, one in zip(commands, done, strict=True)
    }
    assert done[0].returncode == 3, done[0].stderr[-3000:]
    assert "its power switch: " in done[0].stderr, done[0].stderr[-3000:]
    in_vain = "a stage said that it had switched, and nothing came of it; of the next one: "
    assert (in_vain in done[0].stderr) is right, done[0].stderr[-3000:]
    assert (bmc.starts() > 0) is right
    assert (asked / "strip").exists()
    assert watch.rounds
    assert not watch.found
    assert {name for name, text in said.items() for secret in SECRETS if secret in text} == set()
    assert files_with(SECRETS, state) == []
    kept = files_with(SECRETS, tmp_path / "cache")
    # What ansible-inventory said is kept, and a word of the lab's own command with it: for its user alone.
    assert {(path.name.split("-")[0], path.stat().st_mode & 0o777) for path in kept} <= {("inventory", 0o600)}
    assert files_with([BY_ENVIRONMENT, BY_FILE], tmp_path / "cache") == []
