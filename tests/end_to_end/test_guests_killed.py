"""A whole search on real kernels while somebody kills guests and libvirt's daemon, at seeded random moments.

A guest that is taken away says nothing about its commit: the search goes on or ends so that `resume` goes on,
and blames nobody but the culprit.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

pytest.importorskip("libvirt", reason="libvirt-python is not installed: make deps")

from bisector.adapters.guest import libvirt_connection, qemu_processes
from bisector.adapters.guest.libvirt_testbed import domain_prefix
from bisector.adapters.system import processes
from tests.support.installed_command import PERFBISECT, perfbisect
from tests.support.small_history import CHANGES, CULPRIT, LAST

SECONDS = 1800.0
GUESTS = 6
"""So many guests are killed: about one in two boots of this search."""
DAEMONS = 2 if os.geteuid() == 0 and not libvirt_connection._SYSTEMD.exists() else 0
"""Where libvirtd is systemd's it is not ours to kill."""
RESUMES = 4

pytestmark = [
    pytest.mark.end_to_end,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(2 * SECONDS),
]


class Killer:
    """Follows what a search says, and kills while guests boot and run."""

    def __init__(self, state: Path, seed: int) -> None:
        self.moments = random.Random(seed)
        self.prefix = domain_prefix(state)
        self.guests = self.daemons = 0
        self.spared = 1

    def hear(self, line: str) -> None:
        """Strike at one in two lines that say that a guest boots or runs."""
        booting, running = "booting " in line, "booted " in line or " run " in line
        if not booting and not running:
            return
        self.spared -= 1
        if self.spared > 0 or self.guests >= GUESTS:
            return
        self.spared = self.moments.randint(2, 4)
        time.sleep(self.moments.uniform(0.2, 3.0 if booting else 1.0))
        if self.daemons < DAEMONS and self.guests % 3 == 2:
            for pid, arguments in list(processes.command_lines()):
                if Path(arguments[0].decode()).name == "libvirtd":
                    os.kill(pid, signal.SIGKILL)
                    self.daemons += 1
        for pid in qemu_processes.qemu_pids(self.prefix)[:1]:
            os.kill(pid, signal.SIGKILL)
            self.guests += 1


def _attempt(command: list[str], environment: dict[str, str], killer: Killer) -> tuple[int, str]:
    """Run perfbisect to its end; return its exit code and what it said."""
    process = subprocess.Popen(
        [PERFBISECT, *command],
        cwd=environment["PERFBISECT_STATE_DIR"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = []
    assert process.stdout is not None
    try:
        for line in process.stdout:
            said.append(line)
            killer.hear(line)
    finally:
        process.kill()  # in vain unless the test itself is ended
    return process.wait(), "".join(said)


def test_killed_guests_and_daemons_blame_nobody(
    tags: tuple[Path, dict[str, str]], cache: Path, tmp_path: Path
) -> None:
    repository, ids = tags
    state = tmp_path / "state"
    state.mkdir()
    environment = {
        **os.environ,
        "PERFBISECT_STATE_DIR": str(state),
        "PERFBISECT_CACHE_DIR": str(cache),
    }
    killer = Killer(state, seed=20261121)
    start = ["start", "--repo", str(repository), "--good", "e2e-00", "--bad", f"e2e-{LAST:02d}"]
    started = time.monotonic()
    code, said = _attempt([*start, "--workload", "pipe-test"], environment, killer)
    attempts = 1
    while code == 3 and attempts <= RESUMES:
        assert "resume" in said, said[-3000:]
        code, said = _attempt(["resume"], environment, killer)
        attempts += 1
    print(
        f"killed {killer.guests} guests and {killer.daemons} daemons; "
        f"{attempts} attempts, {time.monotonic() - started:.0f} s"
    )
    assert code == 0, said[-6000:]
    assert killer.guests >= GUESTS - 2  # else it tested nothing
    assert killer.daemons == DAEMONS
    done = perfbisect("report", "--json", environment=environment)
    report = json.loads(done.stdout)
    (finding,) = report["findings"]
    assert [commit["sha"] for commit in finding["commits"]] == [ids[f"e2e-{CULPRIT:02d}"]]
    assert finding["certified"]
    broken = {
        ids[f"e2e-{n:02d}"] for n, c in enumerate(CHANGES, start=1) if c.kind in ("no build", "no boot")
    }
    assert set(report["untestable"]) <= broken
    assert qemu_processes.qemu_pids(domain_prefix(state)) == []
