"""Two workers on one PostgreSQL server measure one bisection on real guests; one of them is killed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bisector.schemas.database_url import DatabaseUrl
from tests.support.installed_command import PERFBISECT, perfbisect
from tests.support.small_history import CULPRIT, LAST
from tests.support.waiting import until

SECONDS = 1800.0

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.timeout(2 * SECONDS)]

INVENTORY = """
all:
  children:
    testbeds:
      vars: {perfbisect_kind: libvirt, perfbisect_memory_mb: 256, perfbisect_cpus: 1}
      hosts:
        east: {perfbisect_worker: east}
        west: {perfbisect_worker: west}
    builders:
      hosts:
        here: {ansible_connection: local}
"""


@pytest.fixture
def lab(tmp_path: Path, cache: Path, database_url: DatabaseUrl) -> dict[str, str]:
    """The environment of all commands; each worker has a state folder of its own."""
    (tmp_path / "lab.yml").write_text(INVENTORY)
    return {
        **os.environ,
        "PERFBISECT_CACHE_DIR": str(cache),
        "PERFBISECT_LAB": str(tmp_path / "lab.yml"),
        "PERFBISECT_DATABASE": database_url.secret,
        "PERFBISECT_STATE_DIR": str(tmp_path),
    }


@pytest.fixture
def start(lab: dict[str, str], tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Return what starts a worker by its name."""
    started: list[subprocess.Popen[bytes]] = []

    def run(name: str) -> subprocess.Popen[bytes]:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        with (tmp_path / f"{name}.log").open("ab") as log:
            started.append(
                subprocess.Popen(
                    [PERFBISECT, "worker", name],
                    cwd=folder,
                    env={**lab, "PERFBISECT_STATE_DIR": str(folder)},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )
        return started[-1]

    yield run
    for process in started:
        process.terminate()
        process.wait(60)


def test_two_workers_find_the_culprit_together_though_one_is_killed(
    lab: dict[str, str],
    start: Callable[[str], subprocess.Popen[bytes]],
    tags: tuple[Path, dict[str, str]],
    tmp_path: Path,
) -> None:
    def ask(*command: str) -> str:
        done = perfbisect(*command, environment=lab, timeout=SECONDS)
        assert done.returncode == 0, done.stderr[-4000:] + (tmp_path / "east.log").read_text()[-4000:]
        return done.stdout

    def boots(testbed: str) -> int:
        trials = json.loads(ask("report", "--json"))["trials"]
        return sum(trial["testbed"] == testbed and trial["ok"] for trial in trials)

    start("east")
    west = start("west")
    ends = ("--good", "e2e-00", "--bad", f"e2e-{LAST:02d}", "--testbed", "east", "--testbed", "west")
    ask("start", "--detach", "--repo", str(tags[0]), *ends, "--workload", "pipe-test")
    until(lambda: boots("east") > 0 and boots("west") > 1, SECONDS)
    west.kill()
    west.wait(60)
    start("west")  # in the same folder, at once: its name and its testbed are free
    report = json.loads(ask("watch", "--json"))
    (finding,) = report["findings"]
    assert [commit["sha"] for commit in finding["commits"]] == [tags[1][f"e2e-{CULPRIT:02d}"]]
    assert finding["certified"]
    used = [trial["testbed"] for trial in report["trials"] if trial["ok"]]
    assert min(used.count("east"), used.count("west")) > 1
    assert len({trial["boot"] for trial in report["trials"]}) == len(report["trials"])
    said = (tmp_path / "west.log").read_text()
    assert "Traceback" not in said, said[-4000:]
