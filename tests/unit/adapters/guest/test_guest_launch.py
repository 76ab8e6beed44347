"""When a guest on another host begins to boot. Real guests: tests/integration/test_libvirt_guest.py."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest

from bisector.adapters.guest import guest_launch
from bisector.adapters.guest.domain_xml import Guest, OnDisk, OnSerial
from bisector.adapters.guest.guest_launch import GuestBoot, launch, scratch_path, start_on_disk
from bisector.adapters.guest.libvirt_connection import Hypervisor, PortTaken
from bisector.adapters.guest.rootfs import GuestImage
from bisector.adapters.system.architectures import Machine
from bisector.ports import Counting, Job, Needs


def test_what_is_sent_to_the_host_takes_nothing_of_a_boots_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]

    def put(path: Path) -> Path:
        now[0] += 1000.0  # a slow line
        return Path("/there") / path.name

    def start(*_: object) -> None:
        now[0] += 7.0

    host = SimpleNamespace(user="root")
    far: Any = SimpleNamespace(
        put=put, host=host, port=1, there=2, folder=PurePosixPath("/f"), console=Path("c")
    )
    monkeypatch.setattr(guest_launch, "awake_seconds", lambda: now[0])
    monkeypatch.setattr(guest_launch, "domain_xml", lambda _: "")
    variables: Any = SimpleNamespace(memory_mb=512, cpus=1, cmdline="")
    kernel: Any = SimpleNamespace(image=tmp_path / "bzImage", release="6.1")
    hypervisor: Any = SimpleNamespace(uri="", start=start)
    job = Job("w", tmp_path, ("run",), ())
    machine: Any = None
    one = GuestBoot(
        *(variables, "p-", "wall", True, hypervisor, kernel, machine, job, tmp_path, lambda _: None),
        far=far,
    )
    image = cast("GuestImage", SimpleNamespace(disk=tmp_path / "disk.raw"))
    guest, port = start_on_disk(one, image, tmp_path / "console.log", None)
    assert (guest.started, port) == (2100.0, 1)
    fixed = replace(job, environment={"kaslr": "off"})
    variables.cmdline = "quiet"
    assert (one.cmdline, replace(one, job=fixed).cmdline) == ("quiet", "quiet nokaslr")


@pytest.mark.parametrize(
    ("counting", "varied"),
    [
        (None, False),
        ("fresh", True),
        (Counting(("instructions", "loads"), profile=True), False),
        (Counting(("instructions", "LL-misses"), needed=("instructions",)), False),
        (Counting(("LL-misses",)), False),
        (Counting(profile=True, cpu="skylake", models=True), False),
        (Counting(("loads", "LL-misses"), needed=("LL-misses",)), True),
        (Counting(("branch-misses",), needed=("branch-misses",)), True),
        (Counting(("instructions", "modelled-cycles"), needed=("instructions", "modelled-cycles")), True),
    ],
)
def test_boots_differ_where_a_model_decides_or_the_workload_asks_for_it_and_nowhere_else(
    counting: Counting | Literal["fresh"] | None,
    varied: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guests: list[Guest] = []

    def keep(guest: Guest) -> str:
        guests.append(guest)
        return ""

    monkeypatch.setattr(guest_launch, "domain_xml", keep)
    variables: Any = SimpleNamespace(memory_mb=512, cpus=1, cmdline="")
    kernel: Any = SimpleNamespace(image=tmp_path / "bzImage", release="6.1")
    hypervisor: Any = SimpleNamespace(uri="", start=lambda *_: None)
    job = Job("w", tmp_path, ("run",), ())
    asked = {"environment": {"seed": "fresh"}} if counting == "fresh" else {"counting": counting}
    job = replace(job, **asked)
    machine: Any = None
    for _ in range(3):
        one = GuestBoot(
            *(variables, "p-", "instructions", False, hypervisor, kernel, machine, job, tmp_path, print)
        )
        launch(one, OnSerial(tmp_path / "initramfs", tmp_path / "serial"), tmp_path / "console.log")
    seeds = {guest.seed for guest in guests}
    assert len(seeds) == 3 if varied else seeds == {1}


class Host:
    """Where guests are started that only say what they are. taken: so many ports are in use."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, uri: str = "qemu:///session", taken: int = 0) -> None:
        self.uri, self.taken = uri, taken
        self.guests: list[Guest] = []
        self.disks: list[bool] = []
        monkeypatch.setattr(guest_launch, "domain_xml", self.guests.append)

    def start(self, name: str, xml: str) -> None:
        scratch = self.guests[-1].scratch
        self.disks.append(scratch is not None and scratch.exists())
        if self.taken:
            self.taken -= 1
            raise PortTaken("the port chosen for a guest was taken meanwhile")

    def confining_models(self) -> tuple[str, ...]:
        return ("apparmor",)

    def boot(self, folder: Path, **changed: Any) -> GuestBoot:
        variables: Any = SimpleNamespace(memory_mb=512, cpus=3, cmdline="")
        kernel: Any = SimpleNamespace(image=folder / "bzImage", release=changed.pop("release", "6.1"))
        job = Job("w", folder, ("run",), (), needs=Needs(block_device=changed.pop("disk", 0)))
        host, machine = cast("Hypervisor", self), cast("Machine", None)
        one = GuestBoot(variables, "p-", "wall", False, host, kernel, machine, job, folder, lambda _: None)
        return replace(one, **changed)


class Far:
    """Another host: files are there by their names."""

    host, port, there, console = "far", 1, 2, Path("/there/console.log")

    def put(self, path: Path) -> Path:
        return Path("/there") / path.name

    def scratch(self, size: int) -> Path:
        return Path(f"/there/scratch.{size}")


IMAGE = cast("GuestImage", SimpleNamespace(disk=Path("/images/disk.raw")))


def test_a_port_that_is_taken_meanwhile_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program takes one now and then: that is no failure of a trial."""
    ports = iter(range(1001, 1100))
    monkeypatch.setattr(guest_launch, "free_port", lambda: next(ports))
    host = Host(monkeypatch, taken=4)
    _, port = start_on_disk(host.boot(tmp_path), IMAGE, tmp_path / "console.log", None)
    assert [guest.userspace for guest in host.guests] == [
        OnDisk(Path("/images/disk.raw"), number, None) for number in range(1001, 1006)
    ]
    assert port == 1005
    host.taken = 5
    with pytest.raises(PortTaken):
        start_on_disk(host.boot(tmp_path), IMAGE, tmp_path / "console.log", None)
    assert host.taken == 0
    host.taken = 5
    with pytest.raises(PortTaken):  # the way to it is open already: its port is chosen with that
        start_on_disk(host.boot(tmp_path, far=Far()), IMAGE, tmp_path / "console.log", None)
    assert host.taken == 4


def test_a_guest_elsewhere_has_all_its_files_there_and_is_reached_through_the_tunnel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(monkeypatch, "qemu:///system")
    one = host.boot(tmp_path, far=Far(), disk=4096)
    _, port = start_on_disk(one, IMAGE, tmp_path / "console.log", tmp_path / "initramfs")
    (guest,) = host.guests
    assert (port, guest.userspace) == (1, OnDisk(Path("/there/disk.raw"), 2, Path("/there/initramfs")))
    assert (guest.kernel, guest.console) == (Path("/there/bzImage"), Path("/there/console.log"))
    assert (guest.scratch, guest.label) == (Path("/there/scratch.4096"), (0, 0))


@pytest.mark.parametrize(
    ("uri", "label"), [("qemu:///session", None), ("qemu:///system", (os.getuid(), os.getgid()))]
)
def test_a_guest_here_has_the_owner_of_our_files_where_a_system_daemon_starts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str, label: tuple[int, int] | None
) -> None:
    """Else its QEMU may not open them."""
    host = Host(monkeypatch, uri)
    launch(host.boot(tmp_path), OnSerial(tmp_path / "i", tmp_path / "s"), tmp_path / "console.log")
    assert host.guests[0].label == label
    assert host.guests[0].console == tmp_path / "console.log"


def test_a_guest_is_what_its_testbed_and_its_kernel_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(monkeypatch)
    counted: Any = SimpleNamespace(argument="counters.so")
    for one in (
        host.boot(tmp_path),
        host.boot(tmp_path, kvm=True, release="2.6.32", counted=counted),
    ):
        launch(one, OnSerial(tmp_path / "i", tmp_path / "s"), tmp_path / "console.log")
    plain, other = host.guests
    assert (plain.kvm, plain.old, plain.plugin, plain.confined_by) == (False, False, "", ())
    assert (other.kvm, other.old) == (True, True)
    assert (other.plugin, other.confined_by) == ("counters.so", ("apparmor",))
    assert (plain.memory_mb, plain.cpus, plain.scratch) == (512, 3, None)
    assert plain.name.startswith("p-")
    assert plain.name != other.name


def test_the_disk_of_a_workload_has_no_name_once_its_guest_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have all the room of a disk, and a process that is killed removes nothing."""
    host = Host(monkeypatch)
    disk = scratch_path(tmp_path)
    disk.touch()
    launch(host.boot(tmp_path, disk=4096), OnSerial(tmp_path / "i", tmp_path / "s"), tmp_path / "console.log")
    assert host.guests[0].scratch == disk
    assert host.disks == [True]
    assert not disk.exists()
