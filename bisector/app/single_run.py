"""Measuring without a bisection: a workload tried out, one commit, an A/A series."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.app.accept import recipe_for
from bisector.app.testbeds.testbed_use import alone, given_back, use_testbed, use_this_machine
from bisector.app.wiring import Wiring
from bisector.linux.settings_report import unset
from bisector.schemas.workload.compatibility import check_recipe, check_testbed
from bisector.schemas.workload.workload import Workload, load_workload

if TYPE_CHECKING:
    from bisector.model.facts import MonitorResult
    from bisector.model.goal import Metric
    from bisector.ports import BuildOrder, Job, Progress, RunResult, Session
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
        wiring.trees().tree(order.sha, order.patches, order.fixes)  # one that does not apply is told at once
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
        for name, why in unset(session.facts.facts).items():
            progress(f"{name}: {why}")
        for index in range(job.warmup + runs):
            yield session.run(index)
        for monitor in job.monitors:
            on_monitor(session.run_monitor(monitor))
    finally:
        session.leave()


def calibration(
    wiring: Wiring,
    rev: str,
    *,
    workload: str,
    testbed_name: str | None,
    recipe: str,
    metric: str | None,
    boots: int,
    runs: int,
    fresh: bool,
    progress: Callable[[str], None],
) -> tuple[Calibration, Path]:
    """Measure one commit again and again on one testbed; return what that says, and where it is kept.

    Boots of the very same setup that were kept before count, unless `fresh`; each boot is kept when it ends.
    Raises RequestError, KernelError (the commit), InfrastructureError, or Busy while a bisection runs here.
    """
    from bisector.adapters.agent.payload import workload_job
    from bisector.adapters.store import calibrations
    from bisector.app.calibrate import measure
    from bisector.ports import BuildOrder
    from bisector.schemas.kernel.recipe import load_recipe

    manifest = load_workload(workload).with_counter(metric)
    manifest.metric(metric)
    spec = wiring.lab.testbed(testbed_name or wiring.lab.testbeds[0].name)
    sha = wiring.source().resolve(rev)
    check_testbed(manifest, spec)
    machine = wiring.testbed(spec.name)
    manifest.check_clock(machine.clock)
    unit = manifest.metric(metric, machine.clock)
    path = calibrations.path_of(wiring.settings.state_dir, manifest.name, spec.name, unit.name)
    folder = path.with_suffix("")
    wiring.doing = f"calibration of {manifest.name}"
    doing = f"calibration of {manifest.name} on {spec.name}"
    with alone(wiring, doing), use_testbed(wiring, spec.name, progress):
        wanted = BuildOrder(sha, _recipe_for(wiring, recipe, sha, manifest, spec.name))
        arch = load_recipe(wanted.recipe).manifest.arch
        job = workload_job(manifest, folder / "workload", arch)
        facts = {
            "commit": sha,
            "recipe": wanted.recipe,
            "payload": job.checksum,
            "clock": machine.clock,
            "unit": unit.unit,
        }
        kept = calibrations.load(path)
        if kept is None or fresh or kept.facts != facts:
            kept = calibrations.StoredCalibration(facts)

        todo = range(len(kept.boots), boots)
        if todo:
            kernel = wiring.builder().build(wanted, progress)
            with given_back(machine, progress):
                for one in measure(
                    kernel,
                    [machine],
                    job,
                    unit.name,
                    boots=todo,
                    runs=runs,
                    folder=folder,
                    clock=wiring.clock,
                    progress=progress,
                ):
                    kept = kept.with_boot(one.boot, one.boot_seconds, one.run_seconds)
                    calibrations.save(path, kept)
    return kept.analyse(wiring.settings.alpha), path
