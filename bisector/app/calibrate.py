"""A/A: one commit, booted and run again and again, round-robin over the testbeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bisector.errors import WorkloadFailed
from bisector.ports import Clock, Job, Kernel, Progress, Testbed
from bisector.stats.aa_analysis import Boot


@dataclass(frozen=True, slots=True)
class Measured:
    """One finished boot and what it took: seconds to boot, seconds of a run on average (warm-up included)."""

    boot: Boot
    boot_seconds: float
    run_seconds: float


OnBoot = Callable[[Measured], None]
"""Told every finished boot, so that an interruption loses one boot at most."""


def measure(
    kernel: Kernel,
    testbeds: Sequence[Testbed],
    job: Job,
    metric: str,
    *,
    boots: range,
    runs: int,
    folder: Path,
    clock: Clock,
    progress: Progress,
    on_boot: OnBoot,
) -> None:
    """Measure the boots with these numbers, each with `runs` runs after the job's warm-up.

    Raw output goes into `folder`, one folder a boot. A run that is flagged as suspicious is no sample. Raises
    KernelError if the commit fails, InfrastructureError if something else does.
    """
    for number in boots:
        testbed = testbeds[number % len(testbeds)]
        progress(f"boot {number + 1} of {boots.stop} on {testbed.name}")
        on_boot(_boot(testbed, kernel, job, metric, runs, folder / f"boot-{number}", clock, progress))


def _boot(
    testbed: Testbed,
    kernel: Kernel,
    job: Job,
    metric: str,
    runs: int,
    folder: Path,
    clock: Clock,
    progress: Progress,
) -> Measured:
    folder.mkdir(parents=True, exist_ok=True)
    started = clock.now()
    session = testbed.boot(kernel, job, folder, progress)
    booted = clock.now()
    values: list[float] = []
    at: list[float] = []
    try:
        for index in range(job.warmup + runs):
            result = session.run(index)
            if index < job.warmup or result.flags or metric not in result.values:
                continue
            value = result.values[metric]
            if not math.isfinite(value):
                raise WorkloadFailed(f"the workload printed {value} for {metric}")
            values.append(value)
            at.append(clock.now())
            progress(f"run {len(values)} of {runs}: {value:g}")
        per_run = (clock.now() - booted) / (job.warmup + runs)
    finally:
        session.leave()
    return Measured(Boot(testbed.name, tuple(values), tuple(at)), booted - started, per_run)
