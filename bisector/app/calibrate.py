"""A/A: one commit, booted and run again and again, round-robin over the testbeds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bisector.errors import WorkloadFailed
from bisector.ports import Clock, Job, Kernel, Progress, Testbed
from bisector.stats.aa_analysis import Boot

SMALL_WORKLOAD = "pipe-test"
"""Small, needs nothing of a kernel or testbed, has both clocks, and feels first what is wrong with a machine:
its frequency, caches and idle states."""
SMALL_RUNS = 8  # of a boot: 12 s in an emulated guest, 2 s on a machine; their median counts


@dataclass(frozen=True, slots=True)
class Measured:
    """One finished boot and what it took: seconds to boot, seconds of a run on average (warm-up included)."""

    boot: Boot
    boot_seconds: float
    run_seconds: float


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
) -> Iterator[Measured]:
    """Measure the boots with these numbers, each with `runs` runs after the job's warm-up.

    Each is given as soon as it has ended, so that an interruption loses one boot at most. Raw output goes
    into `folder`, one folder a boot. A run that is flagged as suspicious is no sample. Raises KernelError if
    the commit fails, InfrastructureError if something else does.
    """
    for number in boots:
        testbed = testbeds[number % len(testbeds)]
        progress(f"boot {number + 1} of {boots.stop} on {testbed.name}")
        raw_output = folder / f"boot-{number}"
        raw_output.mkdir(parents=True, exist_ok=True)
        started = clock.now()
        session = testbed.boot(kernel, job, raw_output, progress)
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
        yield Measured(Boot(testbed.name, tuple(values), tuple(at)), booted - started, per_run)
