"""What a lab owner does with a machine: `lab check --deep` to its end, and preparing it by hand and back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bisector.resources import resource
from tests.lab.machine import Machine
from tests.lab.machines import write_inventory
from tests.support.installed_command import perfbisect

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(3600)]


def test_a_machine_is_checked_to_its_end_and_given_back(
    machine_of: Callable[[str], Machine], tmp_path: Path
) -> None:
    machine = machine_of("ipmi")
    machine.wait_for_ssh()
    lab = write_inventory([machine], tmp_path / "lab.yml")
    (tmp_path / "state").mkdir()
    done = perfbisect(
        *("lab", "check", "--deep", machine.name, "--yes", "--json", "--lab", str(lab)),
        *("--report", str(tmp_path / "checklist.txt")),
        environment={**os.environ, "PERFBISECT_STATE_DIR": str(tmp_path / "state")},
        timeout=3000,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = json.loads(done.stdout)
    results = {one["check"]: one["result"] for one in found["checks"]}
    for check in ("python", "power", "power cycle", "round trip", "given back"):
        assert results[check] == "ok", found
    # ipmi_sim takes up a serial line that was cut after 10 s: a fast machine has booted by then.
    assert results["console in boot"] in ("ok", "doubtful"), found
    assert results["noise"] in ("ok", "doubtful") and results["clock rate"] in ("ok", "doubtful")
    assert "Everything was tried." in (tmp_path / "checklist.txt").read_text()
    assert machine.kernel() == machine.base.kernel
    assert machine.password not in done.stdout + done.stderr + (tmp_path / "checklist.txt").read_text()


def test_a_machine_is_prepared_by_hand_and_put_back(
    machine_of: Callable[[str], Machine], tmp_path: Path
) -> None:
    machine = machine_of("ipmi")
    machine.wait_for_ssh()
    wanted = {"governor": "performance", "aslr": "off", "thp": "never", "swap": "off", "timers": "off"}
    host = {**machine.host_variables(), "perfbisect_environment": wanted}
    known = f"-o UserKnownHostsFile={host['perfbisect_known_hosts']}"
    host |= {"ansible_ssh_common_args": known, "ansible_python_interpreter": "/usr/bin/python3"}
    lab = tmp_path / "lab.yml"
    lab.write_text(json.dumps({"all": {"children": {"testbeds": {"hosts": {machine.name: host}}}}}))

    def play(*words: str) -> str:
        program = Path(sys.executable).parent / "ansible-playbook"
        command = [str(program), "-i", str(lab), "quiet.yml", *words]
        done = subprocess.run(command, cwd=resource("playbooks"), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def aslr() -> str:
        return machine.run("cat", "/proc/sys/kernel/randomize_va_space").strip()

    assert aslr() == "2"
    told = play("--check")
    assert "aslr: 2 -> 0" in told and "governor: there is no such setting here" in told
    assert "timers: there is no such setting here" in told, "it has no systemd"
    assert aslr() == "2", "--check changes nothing"
    assert "aslr: 2 -> 0" in play() and aslr() == "0"
    assert "aslr: 0 already" in play()
    assert "aslr: back to 2" in play("-e", "perfbisect_quiet=restore") and aslr() == "2"
    assert machine.run("ls", "/run").split().count("perfbisect-quiet") == 0
