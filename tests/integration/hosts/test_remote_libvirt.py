"""Guests of another host: here this machine's libvirtd, reached by qemu+ssh:// through a real sshd."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

pytest.importorskip("libvirt", reason="libvirt-python is not installed: make deps")

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.guest import qemu_processes, remote_host
from bisector.adapters.guest.libvirt_connection import Hypervisor
from bisector.adapters.guest.libvirt_testbed import LibvirtTestbed, domain_prefix
from bisector.adapters.system.ssh import UnverifiedHost
from bisector.errors import InfrastructureError, TestbedLost
from bisector.ports import Job
from bisector.resources import resource
from bisector.schemas.connection import Connection
from bisector.schemas.lab import TestbedSpec
from bisector.schemas.machine.testbed_variables import TestbedVariables
from tests.support import guests
from tests.support.demo_history import CACHE
from tests.support.loopback_sshd import Server, keygen, known
from tests.support.workload_jobs import shell_job

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]

Made = Callable[[Path], LibvirtTestbed]


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of guests on the other host."""
    monkeypatch.setattr(remote_host, "_FOLDER", PurePosixPath(tmp_path / "far"))
    return tmp_path / "far"


@pytest.fixture
def testbed(sshd: Server, state: Path) -> Made:
    Hypervisor().close()  # the other host's libvirtd runs

    def made(known_hosts: Path) -> LibvirtTestbed:
        uri = f"qemu+ssh://root@127.0.0.1:{sshd.host.port}/system"
        variables = TestbedVariables(
            kind="libvirt", clock="instructions", libvirt_uri=uri, known_hosts=str(known_hosts)
        )
        connection = Connection(guests.NAME, 22, "root", sshd.host.key, False)
        spec = TestbedSpec(guests.NAME, variables, connection)
        return LibvirtTestbed(spec, Ansible(resource("playbooks"), guests.INVENTORY), CACHE, state)

    return made


def test_a_guest_boots_and_measures_on_another_host_and_nothing_of_it_is_left(
    sshd: Server, testbed: Made, far: Path, state: Path, tmp_path: Path
) -> None:
    job: Job = shell_job(tmp_path, "echo 'real: 1.5'\n", settle=0.0)
    kernel = guests.kernel()
    bed = testbed(sshd.host.known_hosts)
    for number in range(2):
        folder = tmp_path / f"boot{number}"
        folder.mkdir()
        said: list[str] = []
        session = bed.boot(kernel, job, folder, said.append)
        assert any(str(sshd.host) in text for text in said)
        (pid,) = [p for p in qemu_processes.qemu_pids("perfbisect-") if b"far" in _command(p)]
        assert _command(pid).count(str(far).encode()) == 2, "kernel and disk are those there"
        assert session.facts.build_id == kernel.build_id
        assert session.run(0).values == {"real": 1.5}
        session.leave()
        assert not Path(f"/proc/{pid}").exists()
        assert "perfbisect: ready" in (folder / "console.log").read_text(errors="replace")
        assert not list((far / "boots").iterdir())
        names = {path.name for path in (far / "files").iterdir()}
        assert len(names) == 2 and all(re.fullmatch("[0-9a-f]{64}", name) for name in names)

    session = bed.boot(kernel, job, tmp_path, said.append)
    sshd.cut()
    with pytest.raises(TestbedLost):
        session.run(0)
    session.leave()


def test_a_host_that_is_not_who_it_should_be_gets_nothing(
    sshd: Server, testbed: Made, far: Path, tmp_path: Path
) -> None:
    keygen(tmp_path / "other")
    known(tmp_path / "known", sshd.host.port, tmp_path / "other.pub")
    job = shell_job(tmp_path, "true\n", settle=0.0)
    kernel = guests.kernel()
    with pytest.raises(UnverifiedHost, match="another host key"):
        testbed(tmp_path / "known").boot(kernel, job, tmp_path, print)
    with pytest.raises(InfrastructureError, match="an initramfs alone"):
        testbed(tmp_path / "known").boot(replace(kernel, userspace="initramfs"), job, tmp_path, print)
    assert not far.exists()


def test_two_hosts_with_equal_state_folders_have_guests_of_different_names() -> None:
    assert domain_prefix(Path("/state"), "one") != domain_prefix(Path("/state"), "two")


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
