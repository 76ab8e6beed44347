"""A/A: one commit, booted and run again and again, round-robin over the testbeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from bisector.core.calibration import Boot
from bisector.errors import RequestError, WorkloadFailed
from bisector.ports import Builder, BuildOrder, Clock, Job, Kernel, Progress, Testbed

OnBoot = Callable[[Boot], None]
"""Told every finished boot, so that an interruption loses one boot at most."""


def measure(
    builder: Builder,
    testbeds: Sequence[Testbed],
    order: BuildOrder,
    job: Job,
    metric: str,
    *,
    boots: int,
    runs: int,
    folder: Path,
    clock: Clock,
    progress: Progress,
    on_boot: OnBoot,
) -> list[Boot]:
    """Measure `boots` boots of one commit with `runs` samples each, after the job's warm-up runs.

    Raw output goes into `folder`, one folder a boot. A run that is flagged as suspicious is no sample. Raises
    RequestError for counts that show nothing, KernelError if the commit fails, InfrastructureError otherwise.
    """
    if boots < 2 or runs < 2:
        raise RequestError("an A/A measurement needs at least two boots with two runs each")
    kernel = builder.build(order, progress)
    result: list[Boot] = []
    for number in range(boots):
        testbed = testbeds[number % len(testbeds)]
        progress(f"boot {number + 1} of {boots} on {testbed.name}")
        boot = _boot(testbed, kernel, job, metric, runs, folder / f"boot-{number}", clock, progress)
        result.append(boot)
        on_boot(boot)
    return result


def _boot(
    testbed: Testbed,
    kernel: Kernel,
    job: Job,
    metric: str,
    runs: int,
    folder: Path,
    clock: Clock,
    progress: Progress,
) -> Boot:
    folder.mkdir(parents=True, exist_ok=True)
    session = testbed.boot(kernel, job, folder, progress)
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
    finally:
        session.leave()
    return Boot(testbed.name, tuple(values), tuple(at))
