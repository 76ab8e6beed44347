"""Guests without disk and network, as kernels older than any distribution need them: over serial ports.

The kernel is the one of the other guest tests with one option more, since nothing older is in an archive; the
user space, the machine and the line are what v2.6.18 gets.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

pytest.importorskip("libvirt", reason="libvirt-python is not installed: make deps")

from bisector.adapters.agent.payload import workload_job
from bisector.adapters.guest import qemu_processes
from bisector.adapters.guest.libvirt_testbed import LibvirtTestbed, domain_prefix
from bisector.errors import BootFailed, InfrastructureError, TestbedLost, WorkloadFailed
from bisector.ports import Kernel
from bisector.schemas.workload.workload import load_workload
from tests.support import guests
from tests.support.workload_jobs import compiled_job

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    built = guests.kernel_without_disk(tmp_path_factory.mktemp("recipes"))
    assert built.userspace == "initramfs"
    return built


@pytest.fixture
def bed(state: Path) -> LibvirtTestbed:
    return guests.testbed(state)


def quiet(_: str) -> None:
    """Progress that nobody wants to see."""


def test_two_boots_of_a_kernel_give_the_same_numbers(
    kernel: Kernel, bed: LibvirtTestbed, tmp_path: Path
) -> None:
    job = workload_job(load_workload("pipe-test"), tmp_path / "job")
    boots = []
    for number in range(2):
        folder = tmp_path / f"boot-{number}"
        session = bed.boot(kernel, job, folder, quiet)
        try:
            results = [session.run(index) for index in range(3)]
        finally:
            session.leave()
        facts = session.facts
        assert (facts.release, facts.build_id) == (kernel.release, kernel.build_id)
        assert facts.facts["guest.userspace"] == "initramfs"
        assert len(facts.facts["image"]) == 64
        assert all(result.flags == () for result in results)
        assert "perfbisect: ready" in (folder / "console.log").read_text(errors="replace")
        assert not (folder / "initramfs").exists()  # the payload is kept once a bisection
        boots.append([result.values["real"] for result in results])
        print(f"to the first command {facts.seconds:.1f} s, to the first run {facts.overhead_seconds:.1f} s")
    for first, second in zip(*boots, strict=True):
        assert second == pytest.approx(first, rel=1e-3)  # 1e-4 and less is what old kernels show


def test_a_guest_on_a_wall_clock_is_asked_for_each_run(kernel: Kernel, state: Path, tmp_path: Path) -> None:
    job = compiled_job(tmp_path, 'puts("real: 1.5"); return 0;')
    session = guests.testbed(state, clock="wall").boot(kernel, job, tmp_path / "boot", quiet)
    try:
        results = [session.run(index) for index in range(2)]
    finally:
        session.leave()
    assert [result.values for result in results] == [{"real": 1.5}] * 2


def test_what_goes_wrong_inside_is_told_apart(kernel: Kernel, bed: LibvirtTestbed, tmp_path: Path) -> None:
    failing = compiled_job(tmp_path / "failing", 'puts("out of luck"); return 3;')
    session = bed.boot(kernel, failing, tmp_path / "boot-1", quiet)
    try:
        with pytest.raises(WorkloadFailed, match="ended with code 3") as caught:
            session.run(0)
    finally:
        session.leave()
    assert "out of luck" in caught.value.details
    crashing = compiled_job(tmp_path / "crashing", "reboot(RB_AUTOBOOT); return 0;")
    session = bed.boot(kernel, crashing, tmp_path / "boot-2", quiet)
    try:
        with pytest.raises(BootFailed, match="kernel died"):
            session.run(0)
    finally:
        session.leave()


def test_a_kernel_that_cannot_start_it_fails_at_once(kernel: Kernel, state: Path, tmp_path: Path) -> None:
    job = compiled_job(tmp_path, "return 0;")
    bed = guests.testbed(state, cmdline="rdinit=/nonexistent")
    with pytest.raises(BootFailed, match="kernel panic"):
        bed.boot(kernel, job, tmp_path / "boot-1", quiet)
    bed = guests.testbed(state, cmdline="8250.nr_uarts=1")
    with pytest.raises(BootFailed, match="the measuring agent cannot run on it"):
        bed.boot(kernel, job, tmp_path / "boot-2", quiet)


def test_another_kernel_than_the_one_under_test_is_refused(
    kernel: Kernel, bed: LibvirtTestbed, tmp_path: Path
) -> None:
    job = compiled_job(tmp_path, "return 0;")
    with pytest.raises(InfrastructureError, match="another kernel"):
        bed.boot(guests.with_build_id(kernel, "00" * 20), job, tmp_path / "boot", quiet)


def test_a_qemu_that_is_killed_during_a_run_is_a_lost_testbed(
    kernel: Kernel, state: Path, bed: LibvirtTestbed, tmp_path: Path
) -> None:
    job = compiled_job(tmp_path, "for (;;) ;", timeout=600)
    session = bed.boot(kernel, job, tmp_path / "boot", quiet)
    try:
        (victim,) = qemu_processes.qemu_pids(domain_prefix(state))
        threading.Timer(1.0, os.kill, (victim, signal.SIGKILL)).start()
        with pytest.raises(TestbedLost):
            session.run(0)
        with pytest.raises(TestbedLost):  # broken stays broken, with the first cause
            session.run(1)
    finally:
        session.leave()
