"""Two builders of one lab at once: this machine, and one that only an inventory and SSH lead to."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.builder import KernelBuilder
from bisector.engine.build_queue import BuildQueue
from bisector.ports import Builder, BuildOrder, Kernel
from bisector.resources import resource
from tests.support.loopback_sshd import Server
from tests.support.toy_kernel import BUILDERS, ToyHistory, tools_missing, write_recipes
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(bool(tools_missing()), reason=f"not installed: {tools_missing()}")

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
        for name in ("box", "crate"):
            told = tmp_path / f"said-{name}"
            until(lambda told=told: waiting in told.read_text(), 200)  # type: ignore[misc]
        assert not (far / "builder" / "out").exists() or not list((far / "builder" / "out").iterdir())
        assert third.stdin is not None
        third.stdin.close()
    assert [process.wait(200) for process in processes] == [0, 0]
    texts = [(tmp_path / f"said-{name}").read_text() for name in ("box", "crate")]
    assert len({text.splitlines()[-1] for text in texts}) == 2  # both kernels, and not one of them twice
    assert list((far / "builder").glob("*.pack")) == []
    assert (far / "builder" / "lock.holder").read_text().startswith("perfbisect with ")


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
        built[sha] = builders.build(BuildOrder(sha, "toy"), lambda _: None)

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
