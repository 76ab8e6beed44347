"""Guests for real: libvirt, QEMU, a kernel built here, Ansible and SSH; and every way in which one can die.

Each boot takes 5 to 15 s of an emulated guest, so tests share one where they leave it unharmed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("libvirt", reason="libvirt-python is not installed: make deps")

from bisector.adapters.guest import guest_launch, libvirt_connection, qemu_processes
from bisector.adapters.guest.libvirt_connection import Hypervisor
from bisector.adapters.guest.libvirt_testbed import domain_prefix
from bisector.adapters.system import processes
from bisector.errors import BootFailed, InfrastructureError, TestbedLost
from bisector.ports import Job, Needs, Session
from tests.support import guests
from tests.support.workload_jobs import shell_job

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]

BUSY = "i=0; while [ $i -lt {count} ]; do i=$((i+1)); done; echo 'real: 1.5'\n"
"""Sleeping would take no host time: an idle guest's clock races."""


def quiet(_: str) -> None:
    """Progress that nobody wants to see."""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return shell_job(tmp_path, BUSY.format(count=2000), settle=0.2)


@contextlib.contextmanager
def booted(state: Path, job: Job, folder: Path, **variables: object) -> Iterator[Session]:
    session = guests.testbed(state, **variables).boot(guests.kernel(), job, folder, quiet)
    try:
        yield session
    finally:
        session.leave()


def qemu(state: Path) -> int:
    (pid,) = qemu_processes.qemu_pids(domain_prefix(state))
    return pid


def test_a_guest_boots_proves_its_kernel_runs_and_leaves_nothing(
    state: Path, job: Job, tmp_path: Path
) -> None:
    kernel = guests.kernel()
    with booted(state, job, tmp_path / "boot") as session:
        facts = session.facts
        assert facts.release == kernel.release
        assert facts.build_id == kernel.build_id
        assert len(facts.facts["image"]) == 64
        assert facts.facts["guest.userspace"] == "debian"
        assert facts.facts["guest.kvm"] == "false"
        for index in range(3):
            result = session.run(index)
            assert result.values == {"real": 1.5}
            assert result.flags == ()
            assert result.guest_seconds < result.seconds
        print(f"boot to SSH {facts.seconds:.1f} s, deploying {facts.overhead_seconds:.1f} s")
    assert qemu_processes.qemu_pids(domain_prefix(state)) == []
    assert "perfbisect: ready" in (tmp_path / "boot" / "console.log").read_text(errors="replace")
    hypervisor = Hypervisor()
    assert hypervisor.sweep(domain_prefix(state)) == []
    hypervisor.close()


def test_a_guest_has_a_fresh_disk_to_overwrite(state: Path, tmp_path: Path) -> None:
    script = """set -e
    [ "$PERFBISECT_BLOCK_DEVICE" = /dev/vdb ] && [ "$(cat /sys/block/vdb/serial)" = perfbisect ]
    head -c 4096 /dev/vdb | tr -d '\\0' | wc -c | grep -qx 0
    head -c 1048576 /dev/zero | tr '\\0' x | dd of=/dev/vdb bs=64k conv=fsync 2>/dev/null
    [ "$(head -c 4 /dev/vdb)" = xxxx ]
    echo "real: $(cat /sys/block/vdb/size)"
    """
    job = replace(shell_job(tmp_path, script), needs=Needs(block_device=64 << 20))
    with booted(state, job, tmp_path / "boot") as session:
        assert session.run(0).values == {"real": (64 << 20) / 512}
        assert not (tmp_path / "boot" / "scratch.raw").exists()  # it lives in QEMU alone


def test_the_instruction_clock_repeats_from_boot_to_boot(state: Path, tmp_path: Path) -> None:
    from bisector.adapters.agent.payload import workload_job
    from bisector.schemas.workload.workload import load_workload

    job = workload_job(load_workload("pipe-test"), tmp_path / "job")
    readings = []
    for boot in range(2):
        with booted(state, job, tmp_path / f"boot-{boot}") as session:
            readings += [session.run(index).values["real"] for index in range(4)][1:]
    spread = (max(readings) - min(readings)) / statistics.median(readings)
    print(f"spread of {len(readings)} runs in 2 boots: {spread:.3%}")
    assert spread < 0.003  # 0.035% was measured over 3 boots of 6 runs; the issue's own figure is 0.2%


def test_a_guest_measures_by_the_wall_clock_too(state: Path, job: Job, tmp_path: Path) -> None:
    with booted(state, job, tmp_path / "boot", clock="wall") as session:
        result = session.run(0)
    assert result.values == {"real": 1.5}
    assert result.guest_seconds <= result.seconds + 0.1


def test_another_kernel_than_the_one_under_test_is_refused(state: Path, job: Job, tmp_path: Path) -> None:
    wrong = guests.with_build_id(guests.kernel(), "00" * 20)
    with pytest.raises(InfrastructureError, match="another kernel") as caught:
        guests.testbed(state).boot(wrong, job, tmp_path / "boot", quiet)
    assert "00" * 20 in caught.value.details


def test_a_panic_is_the_kernels_failure_with_the_consoles_end(state: Path, job: Job, tmp_path: Path) -> None:
    bed = guests.testbed(state, cmdline="init=/nonexistent")
    started = time.monotonic()
    with pytest.raises(BootFailed, match="kernel panic: Requested init /nonexistent failed") as caught:
        bed.boot(guests.kernel(), job, tmp_path / "boot", quiet)
    assert "Kernel panic - not syncing" in caught.value.details
    assert time.monotonic() - started < 120  # seen at once, not at the deadline of 180 s


def test_a_hang_at_boot_is_the_kernels_failure(state: Path, job: Job, tmp_path: Path) -> None:
    bed = guests.testbed(state, cmdline="init=/bin/sleep -- 1000000000", boot_timeout=30)
    with pytest.raises(BootFailed, match="did not boot within 30 s: it hangs before its first process"):
        bed.boot(guests.kernel(), job, tmp_path / "boot", quiet)


def test_a_boot_without_network_is_the_kernels_failure(state: Path, job: Job, tmp_path: Path) -> None:
    bed = guests.testbed(state, cmdline="initcall_blacklist=virtio_net_driver_init", boot_timeout=30)
    with pytest.raises(BootFailed, match="cannot be reached over the network") as caught:
        bed.boot(guests.kernel(), job, tmp_path / "boot", quiet)
    assert "no network" in caught.value.details


def test_a_file_that_is_no_kernel_does_not_boot(state: Path, job: Job, tmp_path: Path) -> None:
    from dataclasses import replace

    bogus = tmp_path / "image"
    bogus.write_bytes(b"not a kernel" * 1000)
    with pytest.raises((BootFailed, InfrastructureError)):
        guests.testbed(state, boot_timeout=20).boot(
            replace(guests.kernel(), image=bogus), job, tmp_path / "boot", quiet
        )


def test_a_guest_that_ends_itself_during_a_run_is_the_kernels_failure(state: Path, tmp_path: Path) -> None:
    job = shell_job(tmp_path, "kill -USR2 1; sleep 60\n")
    with booted(state, job, tmp_path / "boot") as session, pytest.raises(BootFailed, match="kernel died"):
        session.run(0)


def test_a_qemu_that_is_killed_during_a_run_is_a_lost_testbed(state: Path, tmp_path: Path) -> None:
    job = shell_job(tmp_path, BUSY.format(count=50_000_000), timeout=600)
    with booted(state, job, tmp_path / "boot") as session:
        victim = qemu(state)
        threading.Timer(2.0, os.kill, (victim, signal.SIGKILL)).start()
        with pytest.raises(TestbedLost):
            session.run(0)
        with pytest.raises(TestbedLost):  # broken stays broken, with the first cause
            session.run(1)


def test_a_qemu_that_is_killed_during_the_boot_is_a_lost_testbed(
    state: Path, job: Job, tmp_path: Path
) -> None:
    bed = guests.testbed(state, cmdline="init=/bin/sleep -- 1000000000", boot_timeout=60)
    stop = threading.Event()

    console = tmp_path / "boot" / "console.log"

    def kill() -> None:  # once the kernel speaks: before that it is libvirt's start that fails
        while not stop.wait(0.1):
            if console.exists() and "Linux version" in console.read_text(errors="replace"):
                os.kill(qemu(state), signal.SIGKILL)
                return

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.raises(TestbedLost, match="lost while it booted: its QEMU"):
            bed.boot(guests.kernel(), job, tmp_path / "boot", quiet)
    finally:
        stop.set()
        killer.join()


@pytest.mark.skipif(
    os.geteuid() != 0 or libvirt_connection._SYSTEMD.exists(),
    reason="libvirtd is systemd's here, not ours to kill",
)
def test_libvirtd_may_die_under_a_guest_and_comes_back(state: Path, job: Job, tmp_path: Path) -> None:
    with booted(state, job, tmp_path / "boot") as session:
        session.run(0)
        for pid, arguments in list(processes.command_lines()):
            if Path(arguments[0].decode()).name == "libvirtd":
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(TestbedLost, match="cannot be resumed"):
            session.run(1)
    assert qemu_processes.qemu_pids(domain_prefix(state)) == []
    with booted(state, job, tmp_path / "again") as session:
        assert session.run(0).values == {"real": 1.5}


def test_a_killed_perfbisect_takes_its_guest_with_it(state: Path, tmp_path: Path) -> None:
    guests.kernel()
    script = (
        "import sys, time; from pathlib import Path; from tests.support import guests\n"
        "from tests.support.workload_jobs import shell_job\n"
        "job = shell_job(Path(sys.argv[1]), 'echo real: 1')\n"
        "bed, folder = guests.testbed(Path(sys.argv[2])), Path(sys.argv[1]) / 'boot'\n"
        "bed.boot(guests.kernel(), job, folder, lambda _: None)\n"
        "print('booted', flush=True); time.sleep(600)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "child"), str(state)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "booted"
        qemu(state)
    finally:
        child.kill()
        child.communicate()
    deadline = time.monotonic() + 20
    while qemu_processes.qemu_pids(domain_prefix(state)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert qemu_processes.qemu_pids(domain_prefix(state)) == []


def test_a_port_taken_meanwhile_is_tried_again(
    state: Path, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = iter([taken.getsockname()[1], guest_launch.free_port()])
        monkeypatch.setattr(guest_launch, "free_port", lambda: next(ports))
        with booted(state, job, tmp_path / "boot") as session:
            assert session.run(0).values == {"real": 1.5}


def test_ports_that_are_all_taken_are_said(
    state: Path, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(guest_launch, "free_port", lambda: taken.getsockname()[1])
        with pytest.raises(InfrastructureError, match="port"):
            guests.testbed(state).boot(guests.kernel(), job, tmp_path / "boot", quiet)


def test_a_testbed_takes_one_boot_at_a_time(state: Path, job: Job, tmp_path: Path) -> None:
    with booted(state, job, tmp_path / "boot") as session:
        with pytest.raises(InfrastructureError, match="in use"):
            guests.testbed(state).boot(guests.kernel(), job, tmp_path / "other", quiet)
        assert session.run(0).values == {"real": 1.5}
