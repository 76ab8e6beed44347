"""Three machines search one list side by side: by IPMI, by Redfish, by a command alone that reboots."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.campaign.given_back import not_given_back
from tests.lab.listed_kernels import sound_list
from tests.lab.machine import Machine
from tests.lab.machines import write_inventory
from tests.support import demo_history
from tests.support.installed_command import perfbisect

SECONDS = 2400.0
"""A hang guard: eighteen boots, each the slower for the others'."""

BOOT_SECONDS = 37.0
"""Of a boot while the others boot, too, on two CPUs: 20 to 84 s were seen. Measured by itself it takes 8, and
with a limit after that, two boots of one machine came too late: it was set aside, and the two others went on.
"""

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(SECONDS + 600)]


def test_three_machines_find_the_culprit_together(
    machine_of: Callable[[str], Machine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines = [machine_of(kind) for kind in ("ipmi", "redfish", "plain")]
    for machine in machines:
        monkeypatch.setattr(machine, "boot_seconds", BOOT_SECONDS)
    kernels = sound_list(tmp_path / "kernels", 3, 1)
    lab = write_inventory(machines, tmp_path / "lab.yml")
    (tmp_path / "state").mkdir()
    started = time.monotonic()
    done = perfbisect(
        *("start", "--lab", str(lab), "--json", *kernels.options),
        *(word for one in machines for word in ("--testbed", one.name)),
        environment=demo_history.environment(tmp_path / "state"),
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    report = json.loads(done.stdout)
    (finding,) = report["findings"]
    assert [commit["sha"].partition("@")[0] for commit in finding["commits"]] == ["kernel-1"]
    used = [trial["testbed"] for trial in report["trials"]]
    counts = {one.name: used.count(one.name) for one in machines}
    print(f"three machines, {len(used)} boots {counts}, {time.monotonic() - started:.0f} s")
    assert "is set aside" not in done.stderr, done.stderr[-6000:]
    assert all(counts.values()), done.stderr[-6000:]
    assert all(trial["ok"] for trial in report["trials"])
    for machine in machines:
        assert not_given_back(machine) == []
