"""A/A: one commit, booted and run again and again, round-robin over the testbeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bisector.engine.monitor_runs import with_fresh_seed
from bisector.errors import RequestError, WorkloadFailed
from bisector.model.goal import Metric, TestbedClock
from bisector.ports import Clock, Job, Kernel, Progress, Testbed
from bisector.schemas.machine.testbed_variables import BetweenBoots
from bisector.stats.aa_analysis import AABoot
from bisector.stats.comparison import compare
from bisector.stats.comparison_result import Comparison
from bisector.stats.samples import SampleSeries

SMALL_WORKLOAD = "pipe-test"
"""Chosen as it is small, needs nothing special of kernel or testbed, can be measured by both clocks, and is
quick to show a machine's faults: in frequency, caches and idle states."""
SMALL_RUNS = 8  # of a boot: 12 s in an emulated guest, 2 s on a machine; their median counts

KEXEC_ORDER: tuple[BetweenBoots, ...] = ("reboot", "kexec", "kexec", "reboot")
"""What comes before each boot where the two are compared: in this order a steady drift affects both alike."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One finished boot and what it took: seconds to boot, seconds of a run on average (warm-up included)."""

    boot: AABoot
    boot_seconds: float
    run_seconds: float


def as_samples(job: Job, clock: TestbedClock) -> Job:
    """Return a job whose boots are samples of each other.

    Emulated guests get random numbers of their own: boots with the same ones repeat each other to the last
    digit, however much their runs differ by chance, and would show a noise of zero.
    """
    return with_fresh_seed(job) if clock == "instructions" else job


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
    booted: Callable[[Mapping[str, str]], object] = lambda facts: None,
) -> Iterator[Measured]:
    """Measure the boots with these numbers, each with `runs` runs after the job's warm-up.

    booted: is given what each boot says of itself, before its runs; what it raises ends the series.

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
        up = clock.now()
        values: list[float] = []
        at: list[float] = []
        try:
            booted(session.facts.facts)
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
            per_run = (clock.now() - up) / (job.warmup + runs)
        finally:
            session.leave()
        yield Measured(AABoot(testbed.name, tuple(values), tuple(at)), up - started, per_run)


_LABELS: dict[BetweenBoots, str] = {"reboot": "after a reboot", "kexec": "by kexec"}


@dataclass(frozen=True, slots=True)
class KexecComparison:
    """compared: boots after a reboot (a) with boots by kexec (b); saved: seconds that kexec saves a boot."""

    compared: Comparison
    saved: float


def compare_kexec(
    metric: Metric, boots: Sequence[tuple[BetweenBoots, AABoot, float]], alpha: float
) -> KexecComparison:
    """Compare the boots of both ways. boots: the way, what was measured, seconds that the boot took.

    The threshold is the metric's own. Raises RequestError where a side has no value to compare.
    """

    def side(way: BetweenBoots) -> SampleSeries:
        values = tuple(boot.values for kind, boot, _ in boots if kind == way)
        return SampleSeries(values, metric.unit, metric.better)

    def seconds(way: BetweenBoots) -> float:
        return float(np.mean([took for kind, _, took in boots if kind == way]))

    a, b = side("reboot"), side("kexec")
    sides: Sequence[tuple[BetweenBoots, SampleSeries]] = (("reboot", a), ("kexec", b))
    for way, series in sides:
        if not len(series.values):
            raise RequestError(
                f"no boot {_LABELS[way]} has a run with a value of {metric.name} that counts",
                details="each was flagged as suspicious, or did not print it",
                cure="look at the runs' output, mend the machine or the workload, and give --fresh",
            )
    threshold, level = metric.threshold.value, abs(float(np.median(a.values)))
    if not metric.threshold.relative:
        if level == 0:
            raise RequestError(
                f"{metric.name} is 0 {_LABELS['reboot']}: its threshold of {threshold:g} {metric.unit} is no "
                "share of that",
                cure="name another one with --metric",
            )
        threshold /= level
    compared = compare(
        metric.name, a, b, threshold=threshold, alpha=alpha, labels=(_LABELS["reboot"], _LABELS["kexec"])
    )
    return KexecComparison(compared, seconds("reboot") - seconds("kexec"))
