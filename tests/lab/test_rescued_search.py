"""Two machines side by side: commits that panic, hang and lose the network cost a rescue, not the search."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.machine import Machine
from tests.lab.machine_history import CHANGES, CULPRIT, LAST
from tests.lab.machines import write_inventory
from tests.support import demo_history, small_history
from tests.support.installed_command import perfbisect

SECONDS = 3000.0
"""A hang guard: nine kernels of which one is built from nothing, and some twenty boots and rescues."""

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.end_to_end]


@pytest.mark.timeout(SECONDS + 600)
@pytest.mark.parametrize("heard", [True, False], ids=["with consoles", "without consoles"])
def test_the_culprit_is_found_past_kernels_that_machines_are_rescued_from(
    machine_of: Callable[[str], Machine], tmp_path: Path, heard: bool
) -> None:
    machines = [machine_of("ipmi"), machine_of("redfish")]
    ids = small_history.make(tmp_path / "linux", demo_history.prepare(), CHANGES, "box")
    lab = write_inventory(machines, tmp_path / "lab.yml", heard=heard)
    (tmp_path / "state").mkdir()
    environment = {
        **os.environ,
        "PERFBISECT_STATE_DIR": str(tmp_path / "state"),
        "PERFBISECT_CACHE_DIR": str(demo_history.CACHE),
    }
    started = time.monotonic()
    done = perfbisect(
        *("start", "--lab", str(lab), *(word for one in machines for word in ("--testbed", one.name))),
        *("--repo", str(tmp_path / "linux"), "--good", "box-00", "--bad", f"box-{LAST:02d}"),
        *("--recipe", "x86_64-guest+bare-metal", "--workload", "pipe-test", "--json"),
        environment=environment,
        timeout=SECONDS,
    )
    print(f"from two ends to the culprit on two machines in {time.monotonic() - started:.0f} s")
    assert done.returncode == 0, done.stderr[-6000:]
    report = json.loads(done.stdout)
    (finding,) = report["findings"]
    assert [commit["sha"] for commit in finding["commits"]] == [ids[f"box-{CULPRIT:02d}"]]
    kinds = {ids[f"box-{number:02d}"]: change.kind for number, change in enumerate(CHANGES, start=1)}
    failed = {trial["commit"]: trial["failure"] for trial in report["trials"] if not trial["ok"]}
    for sha, failure in failed.items():
        print(f"{kinds.get(sha)}: {failure}")
    assert {kinds[sha] for sha in failed} <= {"panic", "hang", "no network"}
    assert set(failed) <= set(report["untestable"])
    for machine in machines:
        assert machine.kernel() == machine.base.kernel, f"{machine.name} was not given back"
    assert_no_password(machines, tmp_path / "state", done)


def assert_no_password(machines: list[Machine], state: Path, done: subprocess.CompletedProcess[str]) -> None:
    """Passwords are neither in what perfbisect says nor in what it keeps."""
    for machine in machines:
        assert machine.password not in done.stdout + done.stderr
        holders = [
            path
            for path in state.rglob("*")
            if path.is_file() and machine.password.encode() in path.read_bytes()
        ]
        assert not holders
