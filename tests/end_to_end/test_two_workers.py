"""Two workers on one PostgreSQL server measure one bisection on real guests; one of them is killed.

It has a clone of its own, which lacks the commits: it fetches them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("libvirt", reason="libvirt-python is not installed: make deps")

from bisector.adapters.git.repository import Repository
from bisector.adapters.guest.libvirt_connection import Hypervisor
from bisector.schemas.database_url import DatabaseUrl
from tests.support.installed_command import PERFBISECT, perfbisect
from tests.support.small_history import CULPRIT, LAST, git
from tests.support.waiting import until

SECONDS = 1800.0

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a process mounts of its own")
pytestmark = [needs_root, pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.timeout(2 * SECONDS)]

HEALTH = {"east": {}, "west": {"PERFBISECT_HEALTH_CHECKS": "never"}}
"""Settings of the workers. A check takes three boots of eight runs: one testbed is enough."""

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


_ON_ITS_CLONE = 'mount --bind "$1" "$2" && mount --bind "$3" "$1" && shift 3 && exec "$@"'
"""Where the repository is, a clone of it; the repository, its remote, elsewhere."""


@pytest.fixture
def other_host(tmp_path: Path, tags: tuple[Path, dict[str, str]]) -> list[str]:
    """Return the words before a command that has a clone of its own, of the first commit, in its place."""
    repository, clone, remote = tags[0], tmp_path / "clone", tmp_path / "remote"
    first = tags[1]["e2e-00"]
    # Whoever comes first starts libvirtd. Among a worker's own mounts it would not see those of later tests.
    Hypervisor().close()
    git(tmp_path, "init", "--quiet", str(clone))
    shutil.copy(repository / ".git/objects/info/alternates", clone / ".git/objects/info/alternates")
    git(clone, "update-ref", "refs/heads/main", first)
    git(clone, "remote", "add", "origin", str(remote))
    remote.mkdir()
    return ["unshare", "--mount", "sh", "-c", _ON_ITS_CLONE, "sh", str(repository), str(remote), str(clone)]


@pytest.fixture
def start(
    lab: dict[str, str], tmp_path: Path, other_host: list[str]
) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Return what starts a worker by its name."""
    started: list[subprocess.Popen[bytes]] = []

    def run(name: str) -> subprocess.Popen[bytes]:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        with (tmp_path / f"{name}.log").open("ab") as log:
            started.append(
                subprocess.Popen(
                    [*(other_host if name == "west" else ()), PERFBISECT, "worker", name],
                    cwd=folder,
                    env={**lab, "PERFBISECT_STATE_DIR": str(folder), **HEALTH[name]},
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

    def begun() -> bool:
        trials = json.loads(ask("report", "--json"))["trials"]
        used = [trial["testbed"] for trial in trials if trial["ok"]]
        return used.count("east") > 0 and used.count("west") > 1

    start("east")
    culprit = tags[1][f"e2e-{CULPRIT:02d}"]
    clone = Repository(tmp_path / "clone")
    assert clone.resolve(culprit) is None
    ends = ("--good", "e2e-00", "--bad", f"e2e-{LAST:02d}", "--testbed", "east", "--testbed", "west")
    ask("start", "--detach", "--repo", str(tags[0]), *ends, "--workload", "pipe-test")
    sound = "health of the testbed 'east': sound"
    until(lambda: sound in (tmp_path / "east.log").read_text(), SECONDS)
    west = start("west")
    until(begun, SECONDS, every=3)
    west.kill()
    west.wait(60)
    start("west")  # in the same folder, at once: its name and its testbed are free
    report = json.loads(ask("watch", "--json"))
    (finding,) = report["findings"]
    assert [commit["sha"] for commit in finding["commits"]] == [culprit]
    assert clone.resolve(culprit) == culprit
    assert finding["certified"]
    used = [trial["testbed"] for trial in report["trials"] if trial["ok"]]
    assert min(used.count("east"), used.count("west")) > 1
    assert len({trial["boot"] for trial in report["trials"]}) == len(report["trials"])
    said = (tmp_path / "west.log").read_text()
    assert "Traceback" not in said, said[-4000:]
