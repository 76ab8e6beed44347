"""Use case of `perfbisect lab check --deep`: a machine is switched, booted there and back, and measured.

The kernel is the machine's own, so nothing is built. What the five boots measure says how small a change can
be found there. The machine is given back however this ends.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.app.calibrate import SMALL_RUNS, SMALL_WORKLOAD, Measured, measure
from bisector.app.machines.check_machines import around
from bisector.app.machines.kept_checks import keep_check
from bisector.app.testbeds.machine_marks import marked
from bisector.app.testbeds.testbed_hosts import require_own
from bisector.app.testbeds.testbed_use import (
    alone,
    give_back,
    give_back_after_error,
    require_allowed,
    use_testbed,
)
from bisector.errors import Interrupted, PerfbisectError, RequestError
from bisector.model.format import two_figures
from bisector.model.leases import TestbedState
from bisector.model.machines.health import CHECKED_BY
from bisector.model.machines.lab_findings import LabFinding, MachineFindings
from bisector.report.phrases import duration

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.ports import Job, Kernel, Progress, Testbed
    from bisector.schemas.lab import TestbedSpec

NOISE_BOOTS = 5
"""Boots that are measured: their spread is then known within a factor of 3: 0.3% looks unlike 3%."""

_GOOD_EFFECT = 0.05
"""The threshold of most workloads; where five boots a side cannot show so little, searches take long."""

_MARKED_BOOTS = 6
"""How long a check's mark holds, in boot timeouts, plus one for each stage of the power. It has to last
through power cycle, clock and copies, since each boot marks anew."""

_CHECKED_BY_HAND: tuple[TestbedState, ...] = ("suspect", "maintenance")

_LATER = ("power cycle", "console in boot", "clock rate", "round trip", "noise", "given back")


def require_usable(wiring: Wiring, names: Sequence[str]) -> None:
    """Raise RequestError where a testbed is another host's or person's, before any of them is touched."""
    require_own(wiring, names)
    for name in names:
        require_allowed(wiring, name, _CHECKED_BY_HAND)


def deep_checks(wiring: Wiring, names: Sequence[str], progress: Progress) -> Iterator[MachineFindings]:
    """Check one testbed after the other, also after one that cannot be used. Raises Interrupted."""
    from bisector.adapters.machine.machine_needs import failed

    for name in names:
        try:
            found = deep_check(wiring, name, progress)
        except Interrupted:
            raise
        except PerfbisectError as error:
            found = MachineFindings(f"testbed {name}", (failed("use", error),))
        yield found


def deep_check(wiring: Wiring, name: str, progress: Progress) -> MachineFindings:
    """Check a testbed, once it is free; keep what was found, and take it out of use if it failed.

    Raises RequestError for an unknown testbed, MachineInUse, and as `use_testbed` does; what is wrong with
    the machine is in the findings.
    """
    spec = wiring.lab.testbed(name)
    wiring.doing = f"lab check of {name}"
    folder = wiring.settings.state_dir / "lab-checks" / name / "raw"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    started = wiring.clock.now()
    with (
        alone(wiring, wiring.doing),
        use_testbed(wiring, name, progress, wiring.stop.is_set, _CHECKED_BY_HAND),
        marked(wiring, name, (_MARKED_BOOTS + len(spec.variables.power)) * spec.variables.boot_timeout),
    ):
        findings = []
        for one in _steps(wiring, spec, folder, progress):
            findings.append(one)
            progress(f"{name}: {one.check}: {one.result}")
    found = MachineFindings(f"testbed {name}", tuple(findings), wiring.clock.now() - started)
    keep_check(wiring, name, found, started)
    _feed_state(wiring, name, found)
    return found


def _steps(wiring: Wiring, spec: TestbedSpec, folder: Path, progress: Progress) -> Iterator[LabFinding]:
    from bisector.adapters.machine.checks import deep_steps
    from bisector.adapters.machine.checks.lab_check import testbed_checks
    from bisector.adapters.machine.machine_needs import finding

    progress(f"{spec.name}: looking at it")
    plain = []
    for one in testbed_checks(spec, replace(around(wiring), in_use=lambda _: "")):
        plain.append(one)
        yield one
    if spec.variables.kind != "ssh":
        yield from _untried(_LATER, "it is no machine of its own: 'testbed health' boots it and measures")
        return
    wrong = next((one for one in plain if one.result == "wrong"), None)
    if wrong is not None:
        yield from _untried(_LATER, f"first mend what is wrong: {wrong.check}")
        return
    silent: list[LabFinding] = []
    for one in deep_steps.cycle_power(spec, folder, progress):
        if one.check == "console in boot" and one.result == "wrong":
            silent.append(one)  # the boots say more: a BMC may hear nothing for a while after a power cycle
        else:
            yield one
        wrong = wrong or (one if one.result == "wrong" and one.check == "power cycle" else None)
    if wrong is not None:
        yield from _untried(_LATER[2:], "the machine may not answer after the power cycle")
        return
    yield deep_steps.watch_clock(spec, progress)
    kernels: list[Kernel] = []
    fetched = finding("own kernel", partial(_fetch, spec, folder, kernels))
    yield fetched
    if kernels:
        yield from _boots(wiring, spec, kernels[0], folder, progress)
    else:
        yield from _untried(_LATER[3:], "it needs the machine's own kernel")
    for one in silent:
        yield deep_steps.heard_later(one, folder)


def _fetch(spec: TestbedSpec, folder: Path, kernels: list[Kernel]) -> str:
    from bisector.adapters.machine.checks.deep_steps import fetch_own_kernel

    kernels.append(fetch_own_kernel(spec, folder))
    return f"{kernels[0].release}, {kernels[0].image.stat().st_size >> 20} MiB"


def _boots(
    wiring: Wiring, spec: TestbedSpec, kernel: Kernel, folder: Path, progress: Progress
) -> Iterator[LabFinding]:
    """Boot the kernel five times with a small workload, and give the machine back."""
    from bisector.adapters.machine.machine_needs import failed, finding

    try:
        machine, job, metric = _prepare(wiring, spec, kernel, folder)
    except PerfbisectError as refused:
        yield failed("round trip", refused)
        yield from _untried(_LATER[4:], "nothing was booted")
        return
    measured: list[Measured] = []
    error: PerfbisectError | None = None
    try:
        for one in _measured(wiring, machine, job, metric, kernel, folder, progress):
            measured.append(one)
            left = duration(_seconds_left(measured, job.warmup + SMALL_RUNS))
            progress(f"{spec.name}: boot {len(measured)} of {NOISE_BOOTS} measured; about {left} left")
    except BaseException as caught:
        progress(f"{spec.name}: giving it back")
        if isinstance(caught, Interrupted) or not isinstance(caught, PerfbisectError):
            give_back_after_error(machine, progress)
            raise
        error = caught
    else:
        progress(f"{spec.name}: giving it back")
    back = finding("given back", partial(_give_back, machine))
    yield _round_trip(spec, kernel, measured, error)
    yield _noise(wiring, measured, error)
    yield back


def _seconds_left(measured: Sequence[Measured], runs: int) -> float:
    """Return the seconds that the boots to come will take, and giving the machine back, which is one, too.

    By medians: of single boots one takes twice as long as the next. runs: of a boot, with warm-ups.
    """
    boot = statistics.median(one.boot_seconds for one in measured)
    whole = statistics.median(one.boot_seconds + one.run_seconds * runs for one in measured)
    return (NOISE_BOOTS - len(measured)) * whole + boot


def _prepare(wiring: Wiring, spec: TestbedSpec, kernel: Kernel, folder: Path) -> tuple[Testbed, Job, str]:
    from bisector.adapters.agent.payload import workload_job
    from bisector.schemas.workload.workload import load_requested

    workload = load_requested(SMALL_WORKLOAD)
    machine = wiring.testbed(spec.name, wiring.stop.is_set)
    job = workload_job(workload, folder / "workload", kernel.arch)
    return machine, job, workload.metric(None, machine.clock).name


def _measured(
    wiring: Wiring,
    machine: Testbed,
    job: Job,
    metric: str,
    kernel: Kernel,
    folder: Path,
    progress: Progress,
) -> Iterator[Measured]:
    return measure(
        kernel,
        [machine],
        job,
        metric,
        boots=range(NOISE_BOOTS),
        runs=SMALL_RUNS,
        folder=folder,
        clock=wiring.clock,
        progress=lambda text: progress(f"{machine.name}: {text}") if text.startswith("boot ") else None,
    )


def _give_back(machine: Testbed) -> str:
    give_back(machine, lambda _: None)
    return "its own kernel runs, and nothing of ours is there"


def _round_trip(
    spec: TestbedSpec, kernel: Kernel, measured: list[Measured], error: PerfbisectError | None
) -> LabFinding:
    from bisector.adapters.machine.machine_needs import failed

    if not measured and error is not None:
        return failed("round trip", error)
    first = measured[0]
    return LabFinding(
        "round trip",
        "ok",
        f"{kernel.release} booted by {spec.variables.boot_method}, was recognised, and ran {SMALL_WORKLOAD}: "
        f"boot and deployment {duration(first.boot_seconds)}, a run {duration(first.run_seconds)}",
        seconds=first.boot_seconds,
    )


def _noise(wiring: Wiring, measured: list[Measured], error: PerfbisectError | None) -> LabFinding:
    """Return what the boots' spread means for what can be found."""
    import numpy as np

    from bisector.adapters.machine.machine_needs import failed
    from bisector.stats.aa_analysis import calibrate

    if error is not None:
        if not measured:
            return LabFinding("noise", "not tried", "no boot ended well")
        broken = failed("noise", error)
        return replace(
            broken, result="wrong", found=f"boot {len(measured) + 1} of {NOISE_BOOTS}: {broken.found}"
        )
    try:
        result = calibrate(
            [one.boot for one in measured],
            np.random.default_rng(0),
            alpha=wiring.settings.alpha,
            boot_cost=float(np.mean([one.boot_seconds for one in measured])),
            run_cost=float(np.mean([one.run_seconds for one in measured])),
        )
    except RequestError as few:
        return replace(failed("noise", few), result="wrong")
    least = result.smallest_effect(NOISE_BOOTS, SMALL_RUNS)
    text = (
        f"runs of {SMALL_WORKLOAD} spread by {two_figures(result.run_sd.estimate)}, boots by "
        f"{two_figures(result.boot_sd.estimate)}: {NOISE_BOOTS} boots a side show a change of "
        f"{two_figures(least)} 19 times in 20"
    )
    if least > _GOOD_EFFECT:
        cure = "set perfbisect_environment (governor, turbo, C-states, timers), or expect long searches"
        return LabFinding("noise", "doubtful", text, cure, "\n".join(result.warnings))
    return LabFinding("noise", "ok", text, details="\n".join(result.warnings))


def _untried(names: tuple[str, ...], why: str) -> Iterator[LabFinding]:
    for name in names:
        yield LabFinding(name, "not tried", why)


def _feed_state(wiring: Wiring, name: str, found: MachineFindings) -> None:
    """Take a testbed that failed out of use; people release it."""
    first = found.first_wrong()
    if first is None:
        return
    state = next((one.state for one in wiring.coordinator.testbeds() if one.name == name), "good")
    if state == "good":
        reason = f"lab check --deep: {first.check}: {first.found}"
        wiring.coordinator.set_testbed(name, "suspect", reason, CHECKED_BY)
