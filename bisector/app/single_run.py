"""Measuring without a bisection: a workload tried out, one commit, an A/A series."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.app.accept import recipe_for
from bisector.app.execution.readiness import require_guests
from bisector.app.testbeds.kexec_testbeds import kexec_testbeds
from bisector.app.testbeds.testbed_use import alone, given_back, use_testbed, use_this_machine
from bisector.app.wiring import Wiring
from bisector.errors import RequestError
from bisector.linux.boot_remarks import boot_remarks
from bisector.schemas.workload.compatibility import check_recipe, check_testbed
from bisector.schemas.workload.workload import Workload, load_requested

if TYPE_CHECKING:
    from bisector.adapters.store.calibrations import StoredCalibration
    from bisector.app.calibrate import KexecComparison
    from bisector.model.facts import MonitorResult
    from bisector.model.goal import Metric
    from bisector.ports import BuildOrder, Job, Progress, RunResult, Session
    from bisector.schemas.lab import TestbedSpec
    from bisector.schemas.machine.testbed_variables import BetweenBoots
    from bisector.stats.aa_analysis import Calibration

    OnMonitor = Callable[[MonitorResult], None]


def try_workload(
    wiring: Wiring,
    workload: Workload,
    runs: int,
    folder: Path,
    progress: Progress,
    on_monitor: OnMonitor = lambda _: None,
) -> Generator[RunResult, None, None]:
    """Run a workload on this machine, under the kernel it has; warm-up runs come first and are given as well.

    folder: where its program is built and its output kept; on_monitor: is given what each monitor
    measured, after the runs. Raises as `ports.Session.run` does.
    """
    from bisector.adapters.agent.payload import workload_job
    from bisector.adapters.machine.local_testbed import running_kernel

    job = workload_job(workload, folder)
    wiring.doing = f"run of {workload.name}"
    with use_this_machine(wiring, progress) as testbed:
        session = testbed.boot(running_kernel(), job, folder, progress)
        yield from _all_runs(session, job, runs, progress, on_monitor)


def series(workload: Workload, runs: Sequence[Mapping[str, float]]) -> list[tuple[Metric, list[float]]]:
    """Return each metric with its values in the order of runs, over those that have it."""
    found = []
    for spec in workload.manifest.all_metrics():
        values = [run[spec.name] for run in runs if spec.name in run]
        if values:
            found.append((spec.metric(), values))
    return found


def measure_commit(
    wiring: Wiring,
    workload: Workload,
    order: BuildOrder,
    runs: int,
    folder: Path,
    progress: Progress,
    *,
    testbed_name: str | None = None,
    on_monitor: OnMonitor = lambda _: None,
) -> Iterator[RunResult]:
    """Build one commit, boot it once on a testbed and run the workload there, as a bisection does.

    Warm-up runs come first and are given as well; on_monitor as in `try_workload`. Raises KernelError (the
    commit), Busy while a bisection runs in this state folder, InfrastructureError.
    """
    from bisector.adapters.agent.payload import workload_job
    from bisector.schemas.kernel.recipe import load_recipe

    spec = wiring.lab.testbed(testbed_name or wiring.lab.testbeds[0].name)
    check_testbed(workload, spec)
    machine = wiring.testbed(spec.name)
    workload.check_clock(machine.clock)
    recipe = _recipe_for(wiring, order.recipe, order.sha, workload, spec.name)
    check_recipe(workload, load_recipe(recipe))
    order = dataclasses.replace(order, recipe=recipe)
    if order.patches:
        wiring.trees().tree(order.sha, order.patches, order.fixes)  # raises early if one does not apply
    require_guests(wiring, workload, spec.name, recipe, "this run")
    wiring.doing = f"run of {workload.name}"
    with alone(wiring, f"run of {workload.name} on {spec.name}"), use_testbed(wiring, spec.name, progress):
        kernel = wiring.builder().build(order, progress)
        job = workload_job(workload, folder / "workload", kernel.arch)
        with given_back(machine, progress):
            yield from _all_runs(machine.boot(kernel, job, folder, progress), job, runs, progress, on_monitor)


def _recipe_for(wiring: Wiring, name: str, sha: str, workload: Workload, testbed: str) -> str:
    """Return the recipe for a commit that a workload is to be measured on. Raises RequestError for none."""
    from bisector.schemas.kernel.recipe import with_fragments

    recipe = with_fragments(name, workload.manifest.requires.fragments)
    return recipe_for(wiring.trees(), recipe, sha, measures=(wiring, workload, [testbed]))


def _all_runs(
    session: Session, job: Job, runs: int, progress: Progress, on_monitor: OnMonitor
) -> Iterator[RunResult]:
    """Make the warm-up runs, so many more, and those of monitors; leave the boot, however that ends."""
    try:
        for name, why in boot_remarks(session.facts.facts).items():
            progress(f"{name}: {why}")
        for index in range(job.warmup + runs):
            yield session.run(index)
        for monitor in job.monitors:
            on_monitor(session.run_monitor(monitor))
    finally:
        session.leave()


@dataclasses.dataclass(frozen=True, slots=True)
class RepeatedRuns:
    """What is measured again and again. boots: in total, with those kept before; runs: of each boot."""

    rev: str
    workload: str
    testbed: str | None
    recipe: str
    metric: str | None
    boots: int
    runs: int
    fresh: bool


def calibration(
    wiring: Wiring, wanted: RepeatedRuns, progress: Callable[[str], None]
) -> tuple[Calibration, Path]:
    """Measure one commit again and again on one testbed; return what that says, and where it is kept.

    Boots of the very same setup that were kept before count, unless `fresh`; each boot is kept when it ends.
    Raises RequestError, KernelError (the commit), InfrastructureError, or Busy while a bisection runs here.
    """
    kept, path, _ = _boots(wiring, wanted, (), progress)
    return kept.analyse(wiring.settings.alpha), path


def kexec_comparison(
    wiring: Wiring, wanted: RepeatedRuns, progress: Callable[[str], None]
) -> tuple[KexecComparison, Path]:
    """Measure one commit as `calibration`: in half of the boots after a reboot, in half by kexec at once.

    Raises as that, and RequestError for a testbed that does not boot by kexec.
    """
    from bisector.app.calibrate import KEXEC_ORDER, compare_kexec

    spec = _testbed(wiring, wanted)
    if spec.variables.boot_method != "kexec":
        raise RequestError(
            f"the testbed '{spec.name}' does not boot by kexec: each of its boots is a reboot",
            cure="leave --kexec out, or set perfbisect_boot_method: kexec",
        )
    if wanted.boots % len(KEXEC_ORDER):
        raise RequestError(
            f"--boots {wanted.boots} is not a multiple of {len(KEXEC_ORDER)}; --kexec compares equal numbers",
            cure=f"choose a multiple of {len(KEXEC_ORDER)}, such as 8 or 12: each side has half of them",
        )
    kept, path, metric = _boots(wiring, wanted, KEXEC_ORDER, progress)
    measured = list(zip(itertools.cycle(KEXEC_ORDER), kept.boots, kept.boot_seconds, strict=False))
    return compare_kexec(metric, measured, wiring.settings.alpha), path


def _testbed(wiring: Wiring, wanted: RepeatedRuns) -> TestbedSpec:
    return wiring.lab.testbed(wanted.testbed or wiring.lab.testbeds[0].name)


def _boots(
    wiring: Wiring, wanted: RepeatedRuns, ways: Sequence[BetweenBoots], progress: Callable[[str], None]
) -> tuple[StoredCalibration, Path, Metric]:
    """Measure the boots that are not kept yet. ways: what comes before each, in turn; empty: as usual."""
    from bisector.adapters.agent.payload import workload_job
    from bisector.adapters.store import calibrations
    from bisector.app.calibrate import as_samples, measure
    from bisector.ports import BuildOrder
    from bisector.schemas.kernel.recipe import load_recipe

    manifest = load_requested(wanted.workload).with_counter(wanted.metric)
    manifest.metric(wanted.metric)
    spec = _testbed(wiring, wanted)
    sha = wiring.source().resolve(wanted.rev)
    check_testbed(manifest, spec)
    machine = wiring.testbed(spec.name)
    by_way = kexec_testbeds(wiring, spec.name) if ways else {}
    machines = [by_way[way] for way in ways] or [machine]
    manifest.check_clock(machine.clock)
    metric = manifest.metric(wanted.metric, machine.clock)
    path = calibrations.path_of(wiring.settings.state_dir, manifest.name, spec.name, metric.name)
    if ways:
        path = path.with_name(f"{path.stem}@kexec.json")
    folder = path.with_suffix("")
    wiring.doing = f"calibration of {manifest.name}"
    doing = f"calibration of {manifest.name} on {spec.name}"
    with alone(wiring, doing), use_testbed(wiring, spec.name, progress):
        order = BuildOrder(sha, _recipe_for(wiring, wanted.recipe, sha, manifest, spec.name))
        arch = load_recipe(order.recipe).manifest.arch
        job = as_samples(workload_job(manifest, folder / "workload", arch), machine.clock)
        facts = {
            "commit": sha,
            "recipe": order.recipe,
            "payload": job.checksum,
            "clock": machine.clock,
            "unit": metric.unit,
            **{name: value for name, value in job.environment.items() if name == "seed"},
        }
        known = None if wanted.fresh else calibrations.load(path)
        if known is None or known.facts != facts:
            known = calibrations.StoredCalibration(facts)
        # Only whole rounds are kept: the machine was given back, so a kexec would start from its own kernel.
        kept = known.first(len(known.boots) // len(machines) * len(machines))
        todo = range(len(kept.boots), wanted.boots)

        def booted(told: Mapping[str, str]) -> None:
            nonlocal kept
            kept = kept.on_machine(told, spec.name)

        if todo:
            require_guests(wiring, manifest, spec.name, order.recipe, "this calibration")
            kernel = wiring.builder().build(order, progress)
            with ExitStack() as stack:
                for one in dict.fromkeys(machines):
                    stack.enter_context(given_back(one, progress))
                for measured in measure(
                    kernel,
                    machines,
                    job,
                    metric.name,
                    boots=todo,
                    runs=wanted.runs,
                    folder=folder,
                    clock=wiring.clock,
                    progress=progress,
                    booted=booted,
                ):
                    kept = kept.with_boot(measured.boot, measured.boot_seconds, measured.run_seconds)
                    calibrations.save(path, kept)
    return kept, path, metric
