"""Which guests a testbed refuses. Real guests: tests/integration/test_libvirt_guest.py."""

from __future__ import annotations

import contextlib
import platform
import socket
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from types import SimpleNamespace, TracebackType
from typing import Any, Literal, cast

import pytest

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.guest import libvirt_testbed
from bisector.adapters.guest.kvm_probe import KvmProbe
from bisector.adapters.guest.libvirt_connection import Hypervisor
from bisector.adapters.guest.libvirt_testbed import LibvirtTestbed
from bisector.adapters.guest.remote_host import RemoteBoot
from bisector.adapters.guest.rootfs import GuestImages
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.errors import InfrastructureError, Interrupted, TestbedLost
from bisector.model.goal import TestbedClock
from bisector.ports import BootFacts, Counting, Kernel
from bisector.schemas.connection import Connection
from bisector.schemas.lab import TestbedSpec
from bisector.schemas.machine.testbed_variables import TestbedVariables
from tests.support.workload_jobs import shell_job

CAPABILITIES = """<capabilities>
  <host>
    <uuid>d32168c4</uuid>
    <cpu>
      <arch>aarch64</arch>
    </cpu>
    <secmodel><model>dac</model><doi>0</doi></secmodel>
  </host>
  <guest><os_type>hvm</os_type><arch name='x86_64'/></guest>
</capabilities>"""


def hypervisor(capabilities: str) -> Hypervisor:
    """A libvirt that says no more than what it can, and then that it has no guests."""
    one: Any = object.__new__(Hypervisor)
    one.remote = True
    one._connection = SimpleNamespace(
        getCapabilities=lambda: capabilities, listAllDomains=lambda: 1 / 0, close=lambda: None
    )
    return cast("Hypervisor", one)


def test_a_libvirt_tells_the_architecture_of_its_host() -> None:
    assert hypervisor(CAPABILITIES).architecture() == "aarch64"
    with pytest.raises(InfrastructureError, match="does not tell what its host's processor is"):
        hypervisor("<capabilities/>").architecture()


@pytest.mark.parametrize(
    ("userspace", "arch", "clock", "words"),
    [
        ("debian", "x86_64", "wall", "192.0.2.30:22 is aarch64: its x86_64 guests are emulated"),
        ("debian", "arm64", "wall", "image is made here"),
        ("initramfs", "arm64", "wall", "an initramfs alone"),
        ("initramfs", "arm64", "instructions", "an initramfs alone"),
    ],
)
def test_a_guest_elsewhere_is_refused_for_what_its_own_host_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    userspace: str,
    arch: str,
    clock: TestbedClock,
    words: str,
) -> None:
    @contextlib.contextmanager
    def remote_boot(host: SSHHost, port: int, there: int) -> Iterator[RemoteBoot]:
        yield RemoteBoot(host, hypervisor(CAPABILITIES), port, there, PurePosixPath("/f"))

    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(libvirt_testbed, "remote_boot", remote_boot)
    monkeypatch.setattr(GuestImages, "ensure", lambda *_: None)
    uri = "qemu+ssh://root@192.0.2.30/system"
    variables = TestbedVariables(kind="libvirt", clock=clock, libvirt_uri=uri)
    spec = TestbedSpec("far", variables, Connection("far", 22, "root", tmp_path / "key", False))
    testbed = LibvirtTestbed(spec, cast("Ansible", None), tmp_path, tmp_path)
    kernel = cast("Kernel", SimpleNamespace(userspace=userspace, arch=arch, release="6.1", sha="5" * 40))
    with pytest.raises(InfrastructureError, match=words):
        testbed.boot(kernel, shell_job(tmp_path, "true\n"), tmp_path, print)


@pytest.mark.parametrize(
    ("asked", "works", "far", "clock", "kvm"),
    [
        ("auto", True, False, "wall", True),
        ("auto", False, False, "instructions", False),
        ("wall", False, False, "wall", False),
        ("instructions", True, False, "instructions", False),
        ("wall", False, True, "wall", True),  # whether KVM works there, its owner says
        ("auto", True, True, "instructions", False),
    ],
)
def test_a_guest_has_the_clock_that_its_host_can_keep(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: Literal["auto", "wall", "instructions"],
    works: bool,
    far: bool,
    clock: TestbedClock,
    kvm: bool,
) -> None:
    monkeypatch.setattr(KvmProbe, "ask", lambda *_: SimpleNamespace(works=works))
    there: Any = {"libvirt_uri": "qemu+ssh://root@192.0.2.30/system"} if far else {}
    variables = TestbedVariables(kind="libvirt", clock=asked, **there)
    spec = TestbedSpec("g", variables, Connection("g", 22, "root", tmp_path / "key", False))
    testbed = LibvirtTestbed(spec, cast("Ansible", None), tmp_path, tmp_path)
    assert (testbed.clock, testbed._kvm, testbed.has_own_kernel) == (clock, kvm, False)
    of_others = libvirt_testbed.domain_prefix(tmp_path, "" if far else socket.gethostname())
    assert not testbed._prefix.startswith(of_others), "guests of another host's folder are not ended"


REFUSED = InfrastructureError("this QEMU does not load plugins")


@pytest.mark.parametrize(
    ("clock", "needed", "elsewhere", "why"),
    [
        ("instructions", False, False, REFUSED.message),
        ("instructions", True, False, None),
        ("instructions", False, True, "only guests of this machine count"),
        ("wall", False, False, "only an emulated guest (clock 'instructions') counts"),
    ],
)
def test_a_guest_that_cannot_count_does_without_unless_a_count_decides(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clock: TestbedClock,
    needed: bool,
    elsewhere: bool,
    why: str | None,
) -> None:
    tried: list[Path] = []

    def refuse(
        counting: Counting, kernel: Kernel, cache: Path, *_: object, cmdline: str, **__: object
    ) -> None:
        assert cmdline == "nokaslr"
        tried.append(cache)
        raise REFUSED

    monkeypatch.setattr(libvirt_testbed, "CountedRuns", refuse)
    variables = TestbedVariables(kind="libvirt", clock=clock)
    spec = TestbedSpec("g", variables, Connection("g", 22, "root", tmp_path / "key", False))
    testbed = LibvirtTestbed(spec, cast("Ansible", None), tmp_path, tmp_path)
    far = object() if elsewhere else None
    job = SimpleNamespace(warmup=0, payload=tmp_path)
    one: Any = SimpleNamespace(
        far=far, kernel=None, machine=None, folder=tmp_path, job=job, cmdline="nokaslr"
    )
    names = ("LL-misses",)
    counting = Counting(names, names if needed else ())
    if why is None:
        for _ in range(2):  # refused anew each time, with its cure
            with pytest.raises(InfrastructureError, match="does not load plugins"):
                testbed._count(counting, one)
        return
    assert testbed._count(counting, one) is testbed._count(counting, one) is None
    assert testbed._uncounted == why
    assert len(tried) == (1 if why == REFUSED.message else 0)  # what is known is not tried at each boot
    if why == REFUSED.message:
        with pytest.raises(
            InfrastructureError, match="does not load plugins"
        ):  # else it would decide by nothing
            testbed._count(Counting(names, names), one)


def test_a_session_over_ssh_knows_when_its_guest_is_paused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Deployed:
        """A deployment that gives back what its session is made of."""

        def __init__(self, *_: object, **__: object) -> None:
            pass

        def __enter__(self) -> Deployed:
            return self

        def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
            pass

        def start_session(self, kernel: Kernel, **given: Any) -> SimpleNamespace:
            return SimpleNamespace(facts=BootFacts("6.1", ""), **given)

    domain = SimpleNamespace(paused=lambda: "I/O error", ended=lambda: None, destroy=lambda: None)
    guest = SimpleNamespace(domain=domain, started=0.0)
    monkeypatch.setattr(libvirt_testbed, "Deployment", Deployed)
    monkeypatch.setattr(libvirt_testbed, "start_on_disk", lambda *_: (guest, 1))
    monkeypatch.setattr(libvirt_testbed, "wait_for_ssh", lambda *_: None)
    variables = TestbedVariables(kind="libvirt", clock="wall")
    spec = TestbedSpec("g", variables, Connection("g", 22, "root", tmp_path / "key", False))
    testbed = LibvirtTestbed(spec, cast("Ansible", None), tmp_path, tmp_path)
    one: Any = SimpleNamespace(
        kernel=SimpleNamespace(modules=None), folder=tmp_path, far=None, job=None, progress=print
    )
    image: Any = SimpleNamespace(checksum="5", ssh_host=lambda *_: None)
    with contextlib.ExitStack() as held:
        session: Any = testbed._boot_disk(one, image, held)[0]
    assert isinstance(session.paused(), TestbedLost)


@pytest.mark.parametrize("on_disk", [True, False])
def test_a_boot_under_way_ends_when_told_to_stop_and_gets_no_workload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_disk: bool
) -> None:
    ended: list[str] = []

    class Deploying:
        """A deployment of which nothing is asked but its end."""

        def __init__(self, *_: object, **__: object) -> None:
            pass

        def __enter__(self) -> Deploying:
            return self

        def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
            ended.append(f"deployment: {kind}")

    domain = SimpleNamespace(
        paused=lambda: None,
        ended=lambda: None,
        cpu_seconds=lambda: None,
        destroy=lambda: ended.append("guest"),
    )
    guest = SimpleNamespace(domain=domain, started=0.0)
    monkeypatch.setattr(libvirt_testbed, "Deployment", Deploying)
    monkeypatch.setattr(libvirt_testbed, "start_on_disk", lambda *_: (guest, 1))
    monkeypatch.setattr(libvirt_testbed, "launch", lambda *_: guest)
    monkeypatch.setattr(libvirt_testbed, "first_process", lambda *_: b"")
    monkeypatch.setattr(libvirt_testbed, "initramfs", lambda *_, **__: b"")
    variables = TestbedVariables(kind="libvirt", clock="wall")
    spec = TestbedSpec("g", variables, Connection("g", 22, "root", tmp_path / "key", False))
    ansible = Ansible(tmp_path, tmp_path, stop=lambda: True)
    testbed = LibvirtTestbed(spec, ansible, tmp_path, tmp_path)
    one: Any = SimpleNamespace(
        kernel=SimpleNamespace(modules=None),
        folder=tmp_path,
        far=None,
        job=None,
        progress=print,
        machine=None,
    )
    image: Any = SimpleNamespace(checksum="5", ssh_host=lambda *_: None)
    with contextlib.ExitStack() as held, pytest.raises(Interrupted, match="stopped while a guest booted"):
        testbed._boot_disk(one, image, held) if on_disk else testbed._boot_serial(one, held)
    assert ended[-1] == "guest"
    assert len(ended) == 1 + on_disk
