"""Two builders of one lab at once: this machine, and one that only an inventory and SSH lead to."""

from __future__ import annotations

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

pytestmark = pytest.mark.skipif(bool(tools_missing()), reason=f"not installed: {tools_missing()}")

INVENTORY = (
    BUILDERS
    + """\
        box:
          ansible_host: 127.0.0.1
          ansible_port: {port}
          ansible_user: root
          ansible_ssh_private_key_file: {key}
          ansible_ssh_common_args: -o UserKnownHostsFile={known_hosts} -o IdentitiesOnly=yes
          perfbisect_folder: {folder}
"""
)


def test_two_trials_build_at_once_on_two_machines(sshd: Server, tmp_path: Path) -> None:
    history = ToyHistory.create(tmp_path / "repo")
    shas = [
        history.commit({"kernel/work.c": f"int work(int x) {{ return x + {n}; }}\n"}, f"change {n}")
        for n in range(2)
    ]
    kernels, lab = write_recipes(tmp_path / "kernels"), tmp_path / "lab.yml"
    host, far = sshd.host, tmp_path / "far"
    lab.write_text(INVENTORY.format(port=host.port, key=host.key, known_hosts=host.known_hosts, folder=far))

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
