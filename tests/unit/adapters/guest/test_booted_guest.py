"""What a testbed does around the boot of a guest: what is there for it, who may boot, what is left.

No guest is started. Real ones: tests/integration/test_libvirt_guest.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bisector.adapters.agent.cpu_deadline import CpuDeadline
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.guest import libvirt_testbed, serial
from bisector.adapters.guest.domain_xml import OnSerial, scratch_device
from bisector.adapters.guest.guest_launch import GuestBoot, Launched
from bisector.adapters.guest.initramfs import checksum
from bisector.adapters.guest.kvm_probe import KvmProbe
from bisector.adapters.guest.libvirt_testbed import LibvirtTestbed
from bisector.adapters.guest.rootfs import GuestImages
from bisector.adapters.system.architectures import ARM64, X86_64, Machine
from bisector.errors import BootFailed, InfrastructureError
from bisector.model.goal import TestbedClock
from bisector.ports import BootFacts, Counting, Job, Kernel, MetricSpec, Needs, Session
from bisector.schemas.connection import Connection
from bisector.schemas.lab import TestbedSpec
from bisector.schemas.machine.testbed_variables import TestbedVariables


class Host:
    """A host whose libvirt only writes down what it is told."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.did: list[str] = []
        self.booted: list[GuestBoot] = []
        self.archives: list[tuple[Path | None, bytes]] = []
        self.left_behind: list[str] = []
        self.fails: Exception | None = None
        self.images = 0
        self.deadlines: list[CpuDeadline] = []
        self.deployed: dict[str, Any] = {}
        image = SimpleNamespace(disk=folder / "disk", checksum="of the image", ssh_host=lambda *_: None)

        def ensure(*_: object) -> SimpleNamespace:
            self.images += 1
            return image

        monkeypatch.setattr(GuestImages, "ensure", ensure)
        monkeypatch.setattr(KvmProbe, "ask", lambda *_: SimpleNamespace(works=True))
        monkeypatch.setattr(libvirt_testbed, "Hypervisor", lambda: self)
        monkeypatch.setattr(libvirt_testbed, "first_process", lambda _, machine: machine.arch.encode())
        monkeypatch.setattr(
            libvirt_testbed, "initramfs", lambda init, *_, **given: init + repr(given).encode()
        )
        monkeypatch.setattr(libvirt_testbed, "module_initramfs", lambda *_: b"modules")
        monkeypatch.setattr(libvirt_testbed, "start_on_disk", self.start_on_disk)
        monkeypatch.setattr(libvirt_testbed, "launch", self.launch)
        monkeypatch.setattr(libvirt_testbed, "wait_for_ssh", self.wait_for_ssh)
        monkeypatch.setattr(libvirt_testbed, "Deployment", self.deploy)
        monkeypatch.setattr(libvirt_testbed, "CountedRuns", lambda *_, **__: "counts")
        monkeypatch.setattr(serial, "open_session", self.open_session)
        monkeypatch.setattr(Machine, "require_emulator", lambda _: self.did.append("emulator there"))

    # --- as a hypervisor ---

    def sweep(self, prefix: str) -> list[str]:
        self.did.append("sweep")
        return [name for name in self.left_behind if name.startswith(prefix)]

    def close(self) -> None:
        self.did.append("closed")

    # --- as a domain ---

    def cpu_seconds(self) -> float:
        return 7.0

    def destroy(self) -> None:
        self.did.append("destroyed")

    def ended(self) -> None:
        return None

    def paused(self) -> None:
        return None

    def start_on_disk(
        self, one: GuestBoot, image: object, console: Path, modules: Path | None
    ) -> tuple[Launched, int]:
        self.booted.append(one)
        self.archives.append((modules, modules.read_bytes() if modules is not None else b""))
        return Launched(cast("Any", self), 0.0), 22

    def launch(self, one: GuestBoot, userspace: OnSerial, console: Path) -> Launched:
        self.booted.append(one)
        self.archives.append((userspace.archive, userspace.archive.read_bytes()))
        return Launched(cast("Any", self), 0.0)

    def wait_for_ssh(self, liveness: object, port: int, deadline: CpuDeadline) -> None:
        self.deadlines.append(deadline)

    # --- as a deployment, and the session that it gives ---

    def deploy(self, *_: object, **how: Any) -> Host:
        self.deployed = how
        return self

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start_session(self, kernel: Kernel, **given: Any) -> SimpleNamespace:
        if self.fails is not None:
            raise self.fails
        return SimpleNamespace(
            facts=BootFacts("6.1", ""), leave=lambda: None, module_symbols=lambda: "T ext4_read", **given
        )

    def open_session(
        self, kernel: Kernel, job: Job, folder: Path, fifos: object, liveness: Any, **given: Any
    ) -> SimpleNamespace:
        how = {"cpu_time": liveness.cpu_time, "crashed": liveness.crashed}
        return self.start_session(kernel, wall=given["ticks_per_second"] is None, **how, **given)

    # --- what tests do ---

    def testbed(self, clock: TestbedClock = "instructions", **more: Any) -> LibvirtTestbed:
        variables = TestbedVariables(kind="libvirt", clock=clock, **more)
        spec = TestbedSpec("g", variables, Connection("g", 22, "root", self.folder / "key", False))
        return LibvirtTestbed(spec, cast("Ansible", None), self.folder / "cache", self.folder / "state")

    def boot(self, bed: LibvirtTestbed, kernel: Kernel, **job: Any) -> Session:
        made = Job("toy", self.folder, ("toy",), (MetricSpec("real", "s"),), **job)
        return bed.boot(kernel, made, self.folder / "boot", lambda _: None)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


NOWHERE = Path("/nonexistent")
ON_DISK = Kernel("a", "x", "a", NOWHERE, NOWHERE, NOWHERE, "6.1", "", 1.0, False)
MODULAR = replace(ON_DISK, modules=NOWHERE, load=("virtio_blk",))
ON_SERIAL = replace(ON_DISK, userspace="initramfs")


@pytest.mark.parametrize(
    ("kernel", "content", "image", "images"),
    [
        (ON_DISK, b"", "of the image", 1),
        (MODULAR, b"modules", "of the image", 1),
        (replace(ON_DISK, modules=NOWHERE), b"", "of the image", 1),  # it needs none before its root is there
        (ON_SERIAL, b"x86_64{'unasked': True, 'machine': ", checksum(b"x86_64"), 0),
    ],
)
def test_a_guest_has_its_archive_while_it_lives_and_samples_know_their_user_space(
    host: Host, kernel: Kernel, content: bytes, image: str, images: int
) -> None:
    """Without the archive it boots into a panic; samples of two user spaces would be compared as equals."""
    session = host.boot(host.testbed(), kernel)
    ((archive, found),) = host.archives
    assert found.startswith(content) and bool(found) is bool(content)
    assert session.facts.facts["image"] == image
    assert session.facts.facts["guest.userspace"] == kernel.userspace
    assert host.images == images, "an image takes root and minutes to make"
    assert archive is None or archive.exists(), "QEMU may read it again"
    session.leave()
    assert archive is None or not archive.exists(), "the payload would be stored once for each boot"
    assert not list((host.folder / "boot").glob("serial*")), "nor are the ends of its line left open"
    assert host.did == ["emulator there", "sweep", "destroyed", "closed"]


@pytest.mark.parametrize("kernel", [ON_DISK, ON_SERIAL])
@pytest.mark.parametrize(("clock", "busy"), [("wall", False), ("instructions", True)])
def test_the_deadline_of_a_guest_is_in_its_own_time_only_where_it_never_idles(
    host: Host, kernel: Kernel, clock: TestbedClock, busy: bool
) -> None:
    """A hung guest with KVM uses no CPU, and would never end; an emulated one is slow on a busy host."""
    session: Any = host.boot(host.testbed(clock), kernel)
    assert session.inner.cpu_time() == (7.0 if busy else None)
    assert [one.cpu_time() for one in host.deadlines] == [7.0 if busy else None] * (kernel is ON_DISK)
    assert session.inner.ticks_per_second == (1e9 if busy else None)
    assert session.inner.wall is not busy
    assert session.inner.crashed.__self__.console.name == "console.log"
    assert session.suspend_between_runs is (busy and kernel is ON_DISK)


@pytest.mark.parametrize("profile", [False, True])
def test_what_is_counted_is_counted_in_the_guest_and_read_by_its_session(host: Host, profile: bool) -> None:
    counting = Counting(("instructions",), needed=("instructions",), profile=profile)
    session: Any = host.boot(host.testbed(), ON_SERIAL, counting=counting)
    assert host.booted[0].counted == session.counted == "counts"
    assert (session.needed, session.facts.profiled) == (True, profile)
    assert session.module_symbols() == "T ext4_read", "else code of modules has no names in a profile"
    session.leave()
    session = host.boot(host.testbed(), ON_SERIAL)
    assert (host.booted[1].counted, session.counted) == (None, None)
    assert (session.needed, session.facts.profiled) == (False, False)
    session.leave()
    session = host.boot(host.testbed("wall"), ON_SERIAL, counting=replace(counting, needed=()))
    assert (session.needed, session.facts.profiled) == (False, False), "by the wall clock nothing is counted"
    assert "only an emulated guest" in session.uncounted


def test_one_guest_at_a_time_and_the_next_once_it_is_left(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    """Two guests would measure each other."""
    bed = host.testbed()
    host.left_behind = [f"{bed._prefix}1234", "somebody else's"]
    first = host.boot(bed, ON_SERIAL)
    assert [one.getMessage() for one in caplog.records] == [
        f"ended the guest {bed._prefix}1234 of a process that was killed"
    ]
    with pytest.raises(InfrastructureError, match="'g' is in use by another trial"):
        host.boot(host.testbed(), ON_SERIAL)
    first.leave()
    host.boot(host.testbed(), ON_SERIAL).leave()


def test_a_boot_that_fails_leaves_nothing_and_the_next_may_boot(host: Host) -> None:
    host.fails = BootFailed("Kernel panic")
    for kernel in (MODULAR, ON_SERIAL):
        with pytest.raises(BootFailed):
            host.boot(host.testbed(), kernel)
        archive = host.archives[-1][0]
        assert archive is not None and not archive.exists()
    assert host.did == ["emulator there", "sweep", "destroyed", "closed"] * 2


@pytest.mark.parametrize(
    ("clock", "machine", "kvm"),
    [("wall", X86_64, True), ("instructions", X86_64, False), ("instructions", ARM64, False)],
)
def test_kvm_is_used_for_the_wall_clock_and_recorded(
    host: Host, clock: TestbedClock, machine: Machine, kvm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    session = host.boot(host.testbed(clock), replace(ON_SERIAL, arch=machine.arch))
    assert (host.booted[0].kvm, host.booted[0].machine) == (kvm, machine)
    assert session.facts.facts["guest.kvm"] == str(kvm).lower()


def test_a_kernel_of_another_architecture_is_refused_by_the_wall_clock(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be emulated, and its times would say how busy this host was."""
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    with pytest.raises(InfrastructureError, match="arm64 guests are emulated on this machine") as error:
        host.boot(host.testbed("wall"), replace(ON_SERIAL, arch="arm64"))
    assert "perfbisect_clock of 'g' to instructions" in error.value.cure
    assert host.booted == []


@pytest.mark.parametrize("size", [0, 1 << 20])
def test_a_workload_that_needs_a_disk_has_an_empty_one_until_the_end(host: Host, size: int) -> None:
    session = host.boot(host.testbed(), ON_DISK, needs=Needs(block_device=size))
    disk = host.folder / "boot" / "scratch.raw"
    assert disk.exists() is bool(size)
    named = host.booted[0].job.environment.get("env.PERFBISECT_BLOCK_DEVICE")
    assert named == (scratch_device("debian") if size else None)
    session.leave()
    assert not disk.exists()


@pytest.mark.parametrize(("clock", "asked"), [("wall", [X86_64]), ("instructions", [])])
def test_a_guest_elsewhere_may_be_emulated_by_the_instruction_clock_and_its_console_may_be_lost(
    host: Host, monkeypatch: pytest.MonkeyPatch, clock: TestbedClock, asked: list[Machine]
) -> None:
    natives: list[Machine] = []

    @contextlib.contextmanager
    def followed(console: Path) -> Iterator[Callable[[], str]]:
        yield lambda: "ssh has ended"

    @contextlib.contextmanager
    def remote_boot(*_: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(hypervisor=host, require_native=natives.append, followed=followed)

    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(libvirt_testbed, "remote_boot", remote_boot)
    bed = host.testbed(clock, libvirt_uri="qemu+ssh://root@192.0.2.30/system")
    session: Any = host.boot(bed, ON_DISK, needs=Needs(block_device=1 << 20))
    assert natives == asked
    liveness = session.inner.crashed.__self__
    assert liveness.console_ended() == "ssh has ended", "else a boot that nobody hears would be the kernel's"
    assert not (host.folder / "boot" / "scratch.raw").exists(), "the disk is made there"
    session.leave()


def test_a_guest_has_the_settings_of_its_lab_and_folders_that_are_whole_paths(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libvirt runs in another folder."""
    monkeypatch.chdir(host.folder)
    host.folder = Path()
    bed = host.testbed(environment={"kaslr": "off"}, boot_timeout=77)
    host.boot(bed, ON_DISK).leave()
    assert host.booted[0].job.environment == {"kaslr": "off"}
    assert host.booted[0].folder.is_absolute()
    assert host.deployed == {"boot_timeout": 77, "workdir": bed._spec.workdir}
    assert host.deadlines[0].timeout == 77


@pytest.mark.parametrize("kernel", [ON_DISK, ON_SERIAL])
def test_a_console_that_was_printed_in_parts_is_one_file_once_the_guest_has_ended(
    host: Host, kernel: Kernel
) -> None:
    session = host.boot(host.testbed(), kernel)
    console = host.folder / "boot" / "console.log"
    console.write_text("its beginning\n")
    console.rename(console.with_name("console.log.0"))  # as virtlogd does with a full one
    console.write_text("its end\n")
    session.leave()
    assert console.read_text() == "its beginning\nits end\n"
