"""Two machines side by side: kernels that panic, hang or have no network cost a rescue, not the search."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.canary import CommandLineWatch, files_with
from tests.lab.listed_kernels import FAILING, RESCUED_CULPRIT, list_with_failing
from tests.lab.machine import Machine
from tests.lab.machines import write_inventory
from tests.support import demo_history
from tests.support.installed_command import PERFBISECT, perfbisect

SECONDS = 3000.0
"""A hang guard: some thirty boots, and nine rescues of which six wait for a boot that does not come."""

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.end_to_end]


@pytest.mark.timeout(SECONDS + 600)
@pytest.mark.parametrize("heard", [True, False], ids=["with consoles", "without consoles"])
def test_the_culprit_is_found_past_kernels_that_machines_are_rescued_from(
    machine_of: Callable[[str], Machine], tmp_path: Path, heard: bool
) -> None:
    machines = [machine_of("ipmi"), machine_of("redfish")]
    passwords = [machine.password for machine in machines]
    kernels = list_with_failing(tmp_path / "kernels")
    lab = write_inventory(machines, tmp_path / "lab.yml", heard=heard)
    state = tmp_path / "state"
    state.mkdir()
    environment = demo_history.environment(state)
    printed, said = tmp_path / "printed.json", tmp_path / "said.txt"
    started = time.monotonic()
    with CommandLineWatch(passwords) as watch, printed.open("w") as output, said.open("w") as errors:
        code = subprocess.run(
            [
                *(PERFBISECT, "start", "--lab", lab, "--json"),
                *(word for one in machines for word in ("--testbed", one.name)),
                *kernels.options,
            ],
            cwd=state,
            env=environment,
            stdout=output,
            stderr=errors,
            timeout=SECONDS,
            check=False,
        ).returncode
    print(f"from two ends to the culprit on two machines in {time.monotonic() - started:.0f} s")
    assert code == 0, said.read_text()[-6000:]
    report = json.loads(printed.read_text())
    (finding,) = report["findings"]
    assert [commit["sha"].partition("@")[0] for commit in finding["commits"]] == [f"kernel-{RESCUED_CULPRIT}"]
    assert finding["certified"]

    failed = {trial["commit"]: trial["failure"] for trial in report["trials"] if not trial["ok"]}
    for sha, failure in failed.items():
        print(f"{sha}: {failure}")
    names = {sha.partition("@")[0] for sha in failed}
    assert names == {f"kernel-{number}" for number in FAILING}, "each was tried, and nobody else was blamed"
    assert set(failed) == set(report["untestable"])
    for machine in machines:
        assert machine.kernel() == machine.base.kernel, f"{machine.name} was not given back"

    page = tmp_path / "report.html"
    shown = [
        perfbisect(*command, environment=environment).stdout
        for command in (("report",), ("show",), ("status",), ("report", "--html", str(page)))
    ]
    assert all(shown[:3]) and page.stat().st_size
    assert watch.rounds and not watch.found
    assert files_with(passwords, tmp_path) == []
    assert not any(password in text for password in passwords for text in shown)
