"""A health check: a fixed kernel is booted on a testbed, runs a fixed workload, and is compared with before.

The kernel is that of `health_kernel`.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.app.calibrate import SMALL_RUNS, SMALL_WORKLOAD, measure
from bisector.app.execution.health_kernel import choose_kernel
from bisector.app.testbeds.testbed_use import alone, given_back, use_testbed
from bisector.errors import InfrastructureError, Interrupted, KernelError, RequestError
from bisector.model.commit_graph import short_name
from bisector.model.format import change, count, two_figures
from bisector.model.leases import TestbedState, TestbedStatus
from bisector.model.machines.health import CHECKED_BY, Outcome, only_failed_to_boot
from bisector.stats import reference_check
from bisector.stats.reference_check import LEAST_BOOTS, REFERENCE_BOOTS, Judgement, judge

if TYPE_CHECKING:
    from bisector.app.wiring import Stop, Wiring
    from bisector.ports import Job, Kernel, Progress, Testbed
    from bisector.schemas.request import Accepted
    from bisector.store_ports import HealthStore

BOOTS_OF_RETURN = 2
"""Sound boots in a row that put a testbed back in use after it had failed to boot: one may be chance."""

_CHECKED_BY_HAND: tuple[TestbedState, ...] = ("suspect", "maintenance")
"""States in which a person may check a testbed by hand; a retired one may not exist any more."""


@dataclass(frozen=True, slots=True)
class Health:
    """The result of a check. kernel: that was measured; values: of its last boot; state: of the testbed."""

    testbed: str
    outcome: Outcome
    words: str
    kernel: Mapping[str, str]
    values: tuple[float, ...]
    judgement: Judgement | None
    state: str


def check_health(
    wiring: Wiring,
    testbed: str,
    progress: Progress,
    stop: Stop | None = None,
    accepted: Accepted | None = None,
) -> Health:
    """Check a testbed that is ours; one that fails becomes suspect, and one that only failed to boot returns.

    accepted: the bisection that is to use it. Raises RequestError or KernelError (of a build) where there is
    nothing to measure, InfrastructureError of the builder, Interrupted.
    """
    prepared = _prepare(wiring, testbed, progress, stop, accepted)
    before = testbed_status(wiring, testbed)
    returns = only_failed_to_boot(before, health_store(wiring).points(testbed))
    with given_back(prepared.testbed, progress):
        found = _carry_out(wiring, prepared, BOOTS_OF_RETURN if returns else 1, progress, stop)
    outcome, words = found.outcome, found.words
    status = testbed_status(wiring, testbed)  # boots take minutes: people may have taken it out of use
    state: TestbedState = status.state if status is not None else "good"
    # One that waits for a person keeps its reason: a failure to boot in its place would let it return alone.
    stays = state == "suspect" and outcome == "failed" and not returns
    if outcome != "sound" and state in ("good", "suspect") and not stays:
        state = "suspect"
        wiring.coordinator.set_testbed(testbed, state, words, CHECKED_BY)
    elif outcome == "sound" and returns and status == before:
        state = "good"
        wiring.coordinator.set_testbed(testbed, state, f"boots again; {words}", CHECKED_BY)
    return Health(testbed, outcome, words, prepared.facts, found.values, found.judgement, state)


def testbed_status(wiring: Wiring, testbed: str) -> TestbedStatus | None:
    """Return the state of a testbed and who set it; None if nobody has."""
    return next((status for status in wiring.coordinator.testbeds() if status.name == testbed), None)


def health_store(wiring: Wiring) -> HealthStore:
    """Return the health checks in the database of the bisections."""
    from bisector.adapters.store.sql_health import SqlHealth

    return SqlHealth(wiring.database)


def check_now(wiring: Wiring, testbed: str, progress: Progress, *, fresh: bool = False) -> Health:
    """Check a testbed at a person's word. fresh: forget its boots so far. Raises as `use_testbed`, too."""
    wiring.lab.testbed(testbed)
    wiring.doing = f"health check of {testbed}"
    with alone(wiring, wiring.doing), use_testbed(wiring, testbed, progress, besides=_CHECKED_BY_HAND):
        if fresh:
            health_store(wiring).forget_points(testbed)
        return check_health(wiring, testbed, progress)


@dataclass(frozen=True, slots=True)
class _Prepared:
    testbed: Testbed
    kernel: Kernel
    job: Job
    metric: str
    facts: Mapping[str, str]
    folder: Path


@dataclass(frozen=True, slots=True)
class _Found:
    outcome: Outcome
    words: str
    values: tuple[float, ...] = ()
    judgement: Judgement | None = None


def _prepare(
    wiring: Wiring, testbed: str, progress: Progress, stop: Stop | None, accepted: Accepted | None
) -> _Prepared:
    """Build the kernel and the workload."""
    from bisector.adapters.agent.payload import workload_job
    from bisector.schemas.workload.compatibility import check_testbed
    from bisector.schemas.workload.workload import load_requested

    workload = load_requested(SMALL_WORKLOAD)
    spec = wiring.lab.testbed(testbed)
    check_testbed(workload, spec)
    machine = wiring.testbed(testbed, stop)
    points = health_store(wiring).points(testbed)
    chosen = choose_kernel(wiring, workload, testbed, points[-1].kernel if points else None, accepted)
    kernel = chosen.builder(wiring, stop).build(chosen.order, progress)
    folder = wiring.settings.state_dir / "health" / testbed
    job = workload_job(workload, folder / "workload", kernel.arch)
    metric = workload.metric(None, machine.clock)
    facts = {
        **chosen.facts(),
        "workload": SMALL_WORKLOAD,
        "payload": job.checksum,
        "metric": metric.name,
        "unit": metric.unit,
        "clock": machine.clock,
    }
    return _Prepared(machine, kernel, job, metric.name, facts, folder)


def _carry_out(
    wiring: Wiring, prepared: _Prepared, boots: int, progress: Progress, stop: Stop | None
) -> _Found:
    """Boot until the testbed is judged, and keep each boot. boots: sound ones that it takes."""
    name, health = prepared.testbed.name, health_store(wiring)
    known = [p for p in health.points(name) if p.kernel == prepared.facts and p.outcome == "sound"]
    reference = [p.values for p in known][:REFERENCE_BOOTS]
    boots = max(boots, LEAST_BOOTS - len(reference))
    suspicious: _Found | None = None
    while boots > 0:
        found = _boot_once(wiring, prepared, reference, bool(known), progress)
        if stop is not None and stop():  # a stop ends the boot, which looks like a fault from here
            raise Interrupted(f"the health check of '{name}' was stopped")
        if found.outcome != "sound":
            if suspicious is not None:
                for one in (suspicious, found):
                    health.add_point(name, prepared.facts, one.outcome, one.words, one.values)
                return found
            progress(f"{name}: {found.words}; once more")
            suspicious = found
            continue
        if suspicious is not None and suspicious.values:  # it stood out by chance
            health.add_point(name, prepared.facts, "sound", suspicious.words, suspicious.values)
        suspicious = None
        health.add_point(name, prepared.facts, "sound", found.words, found.values)
        if len(reference) < REFERENCE_BOOTS:
            reference.append(found.values)
        boots -= 1
    return found


def _boot_once(
    wiring: Wiring,
    prepared: _Prepared,
    reference: Sequence[Sequence[float]],
    known: bool,
    progress: Progress,
) -> _Found:
    """Boot, run and judge. known: whether the kernel has booted there before."""
    commit = short_name(prepared.facts["commit"])
    try:
        values = _measure(wiring, prepared, progress)
    except KernelError as error:
        if known:
            return _Found("failed", f"{commit}, which has booted there before: {error.message}")
        raise RequestError(
            f"the testbed '{prepared.testbed.name}' cannot be checked with {commit}: {error.message}",
            details=error.details,
            cure="name a commit that boots there: health_commit in perfbisect.toml",
        ) from error
    except InfrastructureError as error:
        return _Found("failed", error.message)
    judgement = judge(reference, values)
    return _Found(*_words(prepared, judgement), values, judgement)


def _measure(wiring: Wiring, prepared: _Prepared, progress: Progress) -> tuple[float, ...]:
    """Return what the runs of one boot measured; raw output is kept of a boot that failed."""
    folder = prepared.folder / f"{wiring.clock.now():.0f}"
    (measured,) = measure(
        prepared.kernel,
        [prepared.testbed],
        prepared.job,
        prepared.metric,
        boots=range(1),
        runs=SMALL_RUNS,
        folder=folder,
        clock=wiring.clock,
        progress=lambda text: None,
    )
    progress(f"{count(len(measured.boot.values), 'run')} of {SMALL_WORKLOAD} on {prepared.testbed.name}")
    if not measured.boot.values or min(measured.boot.values) <= 0:
        raise InfrastructureError(f"no run of {SMALL_WORKLOAD} counts: each was flagged as suspicious")
    shutil.rmtree(folder, ignore_errors=True)
    return measured.boot.values


def _words(prepared: _Prepared, judgement: Judgement) -> tuple[Outcome, str]:
    """Return what a boot shows, with its numbers."""
    what = f"{prepared.metric} of {SMALL_WORKLOAD} on {short_name(prepared.facts['commit'])}"
    if judgement.judged == "kept" or judgement.change is None or judgement.p is None:
        return "sound", f"{what} is kept as the reference, {judgement.boots + 1} of {REFERENCE_BOOTS} boots"
    against = f"against its first {judgement.boots} boots"
    if judgement.judged == "noisy":
        ratio = f"{two_figures(judgement.spread)}, not {two_figures(judgement.usual)}"
        return "noisy", f"runs of {what} spread by {ratio} {against} (p {judgement.p:.2g})"
    text = f"{what} is {change(judgement.change)} {against}"
    if judgement.judged == "moved":
        return (
            "moved",
            f"{text} (p {judgement.p:.2g}; alpha {reference_check.FALSE_ALARM_ALPHA:g}, two boots)",
        )
    return "sound", text
