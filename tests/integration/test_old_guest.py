"""Guests without disk and network, as kernels older than any distribution need them: over serial ports.

The kernel is the one of the other guest tests with one option more, since nothing older is in an archive; the
user space, the machine and the line are what v2.6.18 gets.
"""

from __future__ import annotations

import os
import signal
import statistics
import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("libvirt", reason="libvirt-python is not installed: make deps")

from bisector.adapters.agent.payload import workload_job
from bisector.adapters.guest import qemu_processes
from bisector.adapters.guest.counting.counted_runs import MONITOR
from bisector.adapters.guest.counting.disassembly import annotated_functions
from bisector.adapters.guest.libvirt_testbed import LibvirtTestbed, domain_prefix
from bisector.adapters.parsers.profiles import read as read_profile
from bisector.errors import BootFailed, InfrastructureError, TestbedLost, WorkloadFailed
from bisector.model.facts import MonitorResult
from bisector.ports import Counting, Kernel, Monitor, RunResult
from bisector.schemas.counted_functions import MISSES, NAME, CountedFunctionsFile
from bisector.schemas.workload.counted_metrics import COUNTERS
from bisector.schemas.workload.workload import load_workload
from tests.support import guests
from tests.support.workload_jobs import compiled_job

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]

ROUND_TRIPS = 5000
BASIC = ("instructions", "user-instructions", "kernel-instructions")
ASKING_MORE_EACH_TIME = """
    FILE *file = fopen("runs", "a+");
    fputc('x', file);
    fflush(file);
    long calls = 10000 * ftell(file);
    for (long call = 0; call < calls; call++)
        getppid();
    printf("real: %ld\\n", calls);
    return fclose(file);
"""
"""Run k of a boot has k times the system calls of the first one."""


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


def test_boots_of_a_kernel_give_the_same_numbers_whatever_is_counted(
    kernel: Kernel, bed: LibvirtTestbed, tmp_path: Path
) -> None:
    whole = workload_job(load_workload("pipe-test"), tmp_path / "job")
    # A fourth of the round trips: a model makes them five times as long.
    job = replace(whole, run=(whole.run[0], str(ROUND_TRIPS)))

    def boot(name: str, counting: Counting | None) -> tuple[list[RunResult], MonitorResult]:
        folder = tmp_path / name
        folder.mkdir()
        session = bed.boot(kernel, replace(job, counting=counting), folder, quiet)
        try:
            results = [session.run(index) for index in range(3)]
            profile = session.run_monitor(Monitor(MONITOR, ()))
        finally:
            session.leave()
        facts = session.facts
        assert (facts.release, facts.build_id) == (kernel.release, kernel.build_id)
        assert facts.facts["guest.userspace"] == "initramfs"
        assert len(facts.facts["image"]) == 64
        assert all(result.flags == () for result in results)
        assert "perfbisect: ready" in (folder / "console.log").read_text(errors="replace")
        assert not (folder / "initramfs").exists()  # the payload is kept once a bisection
        for counts in (result.values for result in results if counting is not None):
            assert counts["instructions"] == counts["user-instructions"] + counts["kernel-instructions"]
            # An instruction is a nanosecond of the guest; its process comes on top of what a workload times.
            assert counts["real"] * 1e9 < counts["instructions"] < counts["real"] * 1e9 * 1.1
        print(f"to the first command {facts.seconds:.1f} s, to the first run {facts.overhead_seconds:.1f} s")
        return results, profile

    def times(results: list[RunResult]) -> list[float]:
        return [result.values["real"] for result in results]

    plain, _ = boot("plain", None)
    everything = Counting(tuple(COUNTERS), profile=True)
    for name, counting in (("profiled", Counting(BASIC, profile=True)), ("modelled", everything)):
        results, profile = boot(name, counting)
        if times(results) != times(plain):
            # One boot of ten on a busy host has a page fault less (docs/explanation/counters.md).
            plain, _ = boot(f"plain-beside-{name}", None)
            results, profile = boot(f"{name}-again", counting)
        # To the last nanosecond: nothing that counts can be seen inside.
        assert times(results) == times(plain)
        found = CountedFunctionsFile.model_validate_json((Path(profile.folder) / NAME).read_bytes())
        followed = results[job.warmup].values["kernel-instructions"]
        assert sum(path[2] for path in found.paths) == pytest.approx(followed, rel=1e-12)
    assert {"L1d-misses", "modelled-cycles"} <= results[-1].values.keys()
    for seen in (result.values for result in results):
        print({name: seen[name] for name in ("context-switches", "page-faults", "interrupts")})
        assert 2 * ROUND_TRIPS <= seen["context-switches"] < 2.2 * ROUND_TRIPS  # one CPU: both ways
        # Each page that a process touches first; the timer ticks with the guest's own clock.
        assert 0 < seen["page-faults"] < 1000
        assert 0 < seen["interrupts"] < 1000
    for column, name in enumerate(MISSES):
        whole_runs = statistics.mean(result.values[name] for result in results[job.warmup :])
        kernels = sum(one.misses[column] for one in found.functions)
        programs = sum(one.misses[column] for one in found.programs)
        print(
            f"{name}: {kernels:,.0f} of the kernel and {programs:,.0f} of programs, {whole_runs:,.0f} a run"
        )
        assert kernels > 0.3 * whole_runs and programs > 0, name
        assert kernels + programs == pytest.approx(whole_runs, rel=1e-9), name


def test_each_run_has_the_counts_of_its_own_instructions(
    kernel: Kernel, bed: LibvirtTestbed, tmp_path: Path
) -> None:
    asking = compiled_job(tmp_path, ASKING_MORE_EACH_TIME)
    ways = [f"instructions.{entry}sys_getppid" for entry in ("", "__x64_", "__do_", "__se_")]
    job = replace(asking, warmup=1, counting=Counting((*BASIC, *ways), profile=True))
    folder = tmp_path / "boot"
    folder.mkdir()
    session = bed.boot(kernel, job, folder, quiet)
    try:
        results = [session.run(index) for index in range(4)]
        profile = session.run_monitor(Monitor(MONITOR, ()))
    finally:
        session.leave()
    assert [result.number for result in results] == [1, 2, 3, 4]
    calls = [result.values["real"] for result in results]
    assert calls == [10_000, 20_000, 30_000, 40_000]
    kernel_side = [result.values["kernel-instructions"] for result in results]
    growth = [after - before for before, after in pairwise(kernel_side)]
    assert growth == [pytest.approx(statistics.mean(growth), rel=0.1)] * 3  # each has 10,000 calls more
    found = CountedFunctionsFile.model_validate_json((Path(profile.folder) / NAME).read_bytes())
    assert found.runs == 3
    samples = [kernel_side[index] for index in (1, 2, 3)]
    assert sum(one.instructions for one in found.functions) == pytest.approx(statistics.mean(samples))
    (asked,) = [one for one in found.functions if one.name.endswith("sys_getppid")]
    one_function = [result.values[f"instructions.{asked.name}"] for result in results[1:]]
    assert statistics.mean(one_function) == asked.instructions
    per_call = asked.instructions / statistics.mean(calls[1:])
    assert per_call == pytest.approx(round(per_call), abs=0.01)
    (annotated,) = annotated_functions(read_profile(profile.folder), [asked.name])
    lines = [line for part in annotated.parts for line in part.instructions]
    assert lines[0].executions == pytest.approx(statistics.mean(calls[1:]))
    assert sum(line.executions for line in lines) == pytest.approx(asked.instructions)
    assert annotated.odd == 0
    # Musl's and glibc's wrapper of the call is a function of the program.
    told = {one.name: one for one in found.programs}
    assert sum(one.instructions for one in found.programs) == pytest.approx(found.user)
    assert told["toy:getppid"].calls == statistics.mean(calls[1:])
    assert told["toy:main"].calls == 1
    # Calls are followed in the first sample alone; all that it executed is on one of the paths.
    assert sum(path[2] for path in found.paths) == pytest.approx(samples[0], rel=1e-12)
    assert [path[3] for path in found.paths if path[1] == asked.name] == [calls[1]]


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
