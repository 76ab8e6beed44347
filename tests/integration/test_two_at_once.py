"""Two that build or measure at once: builders of one lab, and perfbisects that know nothing of each other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

import pytest

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.builder import KernelBuilder
from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.engine.build_queue import BuildQueue
from bisector.model.records import Booted, Left
from bisector.ports import Builder, BuildOrder, Kernel
from bisector.resources import resource
from tests.support.loopback_sshd import Server
from tests.support.toy_kernel import BUILDERS, ToyHistory, tools_missing, write_recipes
from tests.support.waiting import until

builds = pytest.mark.skipif(bool(tools_missing()), reason=f"not installed: {tools_missing()}")

INVENTORY = (
    BUILDERS
    + """\
        {name}:
          ansible_host: 127.0.0.1
          ansible_port: {port}
          ansible_user: root
          ansible_ssh_private_key_file: {key}
          ansible_ssh_common_args: -o UserKnownHostsFile={known_hosts} -o IdentitiesOnly=yes
          perfbisect_folder: {folder}
"""
)


BUILD = """
import sys
from pathlib import Path
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.builder import KernelBuilder
from bisector.ports import BuildOrder
from bisector.resources import resource
repository, cache, lab, name, kernels, sha = sys.argv[1:]
builder = KernelBuilder(Path(repository), Path(cache), Ansible(resource("playbooks"), Path(lab)), host=name,
                        kernels=Path(kernels), user=f"perfbisect with {name}")
print(builder.build(BuildOrder(sha, "toy"), lambda text: print(text, flush=True)).binary)
"""


@builds
def test_two_processes_that_call_a_builder_differently_build_one_after_the_other(
    sshd: Server, tmp_path: Path
) -> None:
    """Different inventories, names and caches, and one folder on one machine."""
    history = ToyHistory.create(tmp_path / "repo")
    text = "int work(int x) {{ return x + {n}; }}\n"
    shas = [history.commit({"kernel/work.c": text.format(n=n)}, f"change {n}") for n in range(2)]
    kernels, host, far = write_recipes(tmp_path / "kernels"), sshd.host, tmp_path / "far"
    processes = []
    lock = far / "builder" / "lock"
    lock.parent.mkdir(parents=True)
    (far / "builder" / "lock.holder").write_text("a third one (bisection 'x'), since yesterday")
    with subprocess.Popen(["flock", str(lock), "cat"], stdin=subprocess.PIPE) as third:
        for name, sha in zip(("box", "crate"), shas, strict=True):
            lab = tmp_path / f"{name}.yml"
            lab.write_text(
                INVENTORY.format(
                    name=name, port=host.port, key=host.key, known_hosts=host.known_hosts, folder=far
                )
            )
            arguments = [history.path, tmp_path / f"cache-{name}", lab, name, kernels, sha]
            with (tmp_path / f"said-{name}").open("w") as said:
                command = [sys.executable, "-c", BUILD, *map(str, arguments)]
                processes.append(subprocess.Popen(command, stdout=said, stderr=said))
        waiting = f"a third one (bisection 'x'), since yesterday builds in {far}/builder"
        for name, process in zip(("box", "crate"), processes, strict=True):
            told = tmp_path / f"said-{name}"
            until(lambda: waiting in told.read_text() or process.poll() is not None, 200)  # noqa: B023
            assert waiting in told.read_text()
        assert not (far / "builder" / "out").exists() or not list((far / "builder" / "out").iterdir())
        assert third.stdin is not None
        third.stdin.close()
    assert [process.wait(200) for process in processes] == [0, 0]
    texts = [(tmp_path / f"said-{name}").read_text() for name in ("box", "crate")]
    assert len({text.splitlines()[-1] for text in texts}) == 2  # both kernels, and not one of them twice
    assert list((far / "builder").glob("*.pack")) == []
    assert (far / "builder" / "lock.holder").read_text().startswith("perfbisect with ")


@builds
def test_two_trials_build_at_once_on_two_machines(sshd: Server, tmp_path: Path) -> None:
    history = ToyHistory.create(tmp_path / "repo")
    shas = [
        history.commit({"kernel/work.c": f"int work(int x) {{ return x + {n}; }}\n"}, f"change {n}")
        for n in range(2)
    ]
    kernels, lab = write_recipes(tmp_path / "kernels"), tmp_path / "lab.yml"
    host, far = sshd.host, tmp_path / "far"
    lab.write_text(
        INVENTORY.format(name="box", port=host.port, key=host.key, known_hosts=host.known_hosts, folder=far)
    )

    def make(name: str) -> Callable[[Callable[[], bool]], Builder]:
        return lambda stop: KernelBuilder(
            history.path,
            tmp_path / "cache",
            Ansible(resource("playbooks"), lab, stop),
            host=name,
            kernels=kernels,
        )

    builders = BuildQueue([make("here"), make("box")], lambda: False)
    built: dict[str, Kernel] = {}

    def trial(sha: str) -> None:
        kernel = builders.wait(builders.order(BuildOrder(sha, "toy"), lambda _: None))
        assert kernel is not None
        built[sha] = kernel

    threads = [threading.Thread(target=trial, args=(sha,)) for sha in shas]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        builders.close()
    assert set(built) == set(shas)
    assert len({kernel.binary for kernel in built.values()}) == 2
    # One each, and the far one has no object folder of ours to look into: its source came over SSH.
    for folder in (tmp_path / "cache", far):
        assert (folder / "builder" / "out" / "toy-0" / "links").read_text() == "link\n"
    assert not (far / "builder" / "repository.git" / "objects" / "info" / "alternates").exists()


# --- one testbed and two state folders ----------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60.0
SLOW = 2.5
"""Seconds of a build, a boot and a run that are long enough for a wait to be told."""

Start = Callable[[str, float], "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return what starts a bisection on fakes in a state folder of this name, at a pace."""
    started: list[subprocess.Popen[bytes]] = []

    def run(name: str, pace: float) -> subprocess.Popen[bytes]:
        (tmp_path / name).mkdir()
        with (tmp_path / name / "said").open("wb") as said:
            command = [
                sys.executable,
                "tests/support/fake_bisection.py",
                str(tmp_path / name),
                "1",
                str(pace),
            ]
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            started.append(subprocess.Popen(command, cwd=ROOT, env=environment, stdout=said, stderr=said))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


def said(folder: Path) -> str:
    return (folder / "said").read_text()


def status(folder: Path) -> str:
    (one,) = SqlStore(open_state_file(folder / "perfbisect.sqlite")).list()
    return one.status


def test_the_second_waits_says_for_whom_and_measures_when_the_first_is_gone(
    start: Start, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    first = start("one", SLOW)
    until(lambda: "boot " in said(one), SECONDS)
    second = start("two", 0.0)
    until(lambda: "waiting for" in said(two), SECONDS)
    line = next(line for line in said(two).splitlines() if "waiting for" in line)
    assert f"waiting for the testbed 'fake': process {first.pid} (bisection 'fake-" in line
    assert f"state folder {one}), since 20" in line
    assert "boot " not in said(two)
    first.kill()
    assert second.wait(SECONDS) == 0
    assert "boot " in said(two)


def test_two_that_want_one_testbed_have_it_boot_by_boot(start: Start, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    first = start("one", 0.2)  # a busy machine takes seconds to start the second one
    until(lambda: "boot " in said(one), SECONDS)
    second = start("two", 0.05)
    assert (first.wait(SECONDS), second.wait(SECONDS)) == (0, 0)
    boots = []
    for folder in (one, two):
        store = SqlStore(open_state_file(folder / "perfbisect.sqlite"))
        records = [record for _, record in store.records(store.list()[0].id)]
        assert not any(record.lost for record in records if isinstance(record, Left))
        boots += [(record.at, folder.name) for record in records if isinstance(record, Booted)]
    order = [name for _, name in sorted(boots)]
    turns = [len(list(group)) for _, group in groupby(order)]
    assert len(turns) > 4, order


@pytest.mark.parametrize("how", ["terminated", "cancelled"])
def test_a_wait_for_a_testbed_can_be_ended(start: Start, tmp_path: Path, how: str) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    start("one", SLOW)
    until(lambda: "boot " in said(one), SECONDS)
    second = start("two", 0.0)
    until(lambda: "waiting for" in said(two), SECONDS)
    if how == "terminated":
        second.send_signal(signal.SIGTERM)
    else:
        store = SqlStore(open_state_file(two / "perfbisect.sqlite"))
        store.set_status(store.list()[0].id, "cancelled")
    assert second.wait(SECONDS) == 130
    assert status(two) == ("interrupted" if how == "terminated" else "cancelled")
    assert "boot " not in said(two)
    assert status(one) == "running"
