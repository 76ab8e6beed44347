"""Two workers, one machine: one is frozen, the other takes over, the first wakes up and leaves it alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bisector.schemas.database_url import DatabaseUrl
from tests.lab.campaign.given_back import not_given_back
from tests.lab.listed_kernels import sound_list
from tests.lab.machine import Machine
from tests.lab.machines import write_inventory
from tests.support import demo_history
from tests.support.installed_command import PERFBISECT, perfbisect
from tests.support.waiting import until

SECONDS = 1500.0
"""A hang guard: some ten boots, and the 30 s after which a silent worker counts as dead."""

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(2 * SECONDS)]

Start = Callable[[str], subprocess.Popen[bytes]]


@pytest.fixture
def lab(tmp_path: Path, database_url: DatabaseUrl) -> dict[str, str]:
    """The environment of all commands; each worker has its own folders of state and locks, as on two hosts.

    On one host the frozen process would hold the machine's lock for as long as it lives.
    """
    return {
        **demo_history.environment(tmp_path),
        "PERFBISECT_LAB": str(tmp_path / "lab.yml"),
        "PERFBISECT_DATABASE": database_url.secret,
        "PERFBISECT_HEALTH_CHECKS": "never",
    }


@pytest.fixture
def start(lab: dict[str, str], tmp_path: Path) -> Iterator[Start]:
    """Return what starts a worker by its name."""
    started: list[subprocess.Popen[bytes]] = []

    def run(name: str) -> subprocess.Popen[bytes]:
        folder = tmp_path / name
        folder.mkdir()
        with (tmp_path / f"{name}.log").open("ab") as log:
            started.append(
                subprocess.Popen(
                    [PERFBISECT, "worker", name],
                    cwd=folder,
                    env={
                        **lab,
                        "PERFBISECT_STATE_DIR": str(folder),
                        "PERFBISECT_LOCK_DIR": str(folder / "locks"),
                    },
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )
        return started[-1]

    yield run
    for process in started:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(300)


def test_a_machine_is_given_back_by_who_has_it_when_a_lease_was_lost(
    machine_of: Callable[[str], Machine], lab: dict[str, str], start: Start, tmp_path: Path
) -> None:
    machine = machine_of("ipmi")
    write_inventory([machine], tmp_path / "lab.yml")
    kernels = sound_list(tmp_path / "kernels", 2, 1)

    def ask(*command: str) -> str:
        done = perfbisect(*command, environment=lab, timeout=SECONDS)
        logs = "".join(path.read_text()[-3000:] for path in sorted(tmp_path.glob("*.log")))
        assert done.returncode == 0, done.stderr[-3000:] + logs
        return done.stdout

    def boots() -> int:
        return len(json.loads(ask("report", "--json"))["trials"])

    started = time.monotonic()
    first = start("first")
    ask("start", "--detach", "--testbed", machine.name, *kernels.options)
    until(lambda: boots() > 1, SECONDS, every=3)
    os.kill(first.pid, signal.SIGSTOP)
    print(f"{time.monotonic() - started:.0f} s: the first worker is frozen, at boot {boots()}")
    start("second")
    before = boots()
    until(lambda: boots() > before, SECONDS, every=3)
    print(f"{time.monotonic() - started:.0f} s: the second has booted the machine")
    first.send_signal(signal.SIGCONT)
    report = json.loads(ask("watch", "--json"))
    print(f"{time.monotonic() - started:.0f} s: {len(report['trials'])} boots to the end")
    (finding,) = report["findings"]
    assert [commit["sha"].partition("@")[0] for commit in finding["commits"]] == ["kernel-1"]
    until(lambda: not_given_back(machine) == [], 300)
    for name in ("first", "second"):
        said = (tmp_path / f"{name}.log").read_text()
        print(f"{name}: {said[-1500:]}")
        assert "Traceback" not in said
    trials = report["trials"]
    assert all(trial["ok"] for trial in trials), [trial for trial in trials if not trial["ok"]]
