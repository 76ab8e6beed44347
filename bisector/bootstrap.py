"""The composition root: settings and a request become real adapters. Tests pass their own `Services`.

Adapters are imported where they are made: `perfbisect --help` must not wait for libvirt or SQLAlchemy.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import bisector
from bisector.core.model import CommitGraph, Goal
from bisector.errors import InfrastructureError, RequestError, SourceFailed
from bisector.resources import resource
from bisector.spec import serial
from bisector.spec.request import Accepted, Request
from bisector.spec.settings import Settings
from bisector.spec.workload import Workload, load_workload, parse_threshold

if TYPE_CHECKING:
    from bisector.adapters.host import Check
    from bisector.core.calibration import Calibration
    from bisector.engine.services import Services
    from bisector.ports import Builder, BuildOrder, Planner, Progress, RunResult, Source, Store, Testbed
    from bisector.spec.lab import Lab, TestbedSpec

Stop = Callable[[], bool]
"""Asked while something long runs; True ends it and raises Interrupted."""


class SystemClock:
    """ports.Clock: this host's."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        return time.time()


def store(settings: Settings) -> Store:
    """Open the store of the state folder."""
    from bisector.adapters.store import SqlStore

    return SqlStore(settings.state_dir / "perfbisect.sqlite")


def source(settings: Settings, repo: str | Path) -> Source:
    """Open a kernel repository. Raises RequestError if it is none."""
    from bisector.adapters.git_source import GitSource

    return GitSource(Path(repo).expanduser(), cache_dir=settings.cache_dir / "graphs")


def lab(settings: Settings) -> Lab:
    """Read the lab's inventory. Raises RequestError naming the host and variable that is wrong."""
    from bisector.adapters.inventory import default_inventory, read_lab

    return read_lab(settings.lab or default_inventory(), settings.cache_dir)


def builder(
    settings: Settings, repo: str | Path, the_lab: Lab, stop: Stop | None = None, name: str | None = None
) -> Builder:
    """Return a builder of the lab, its first unless named, for a repository."""
    from bisector.adapters.ansible import Ansible
    from bisector.adapters.kernel_builder import KernelBuilder

    if not the_lab.builders:
        raise RequestError(f"the inventory {the_lab.inventory} has no host in the group 'builders'")
    host = the_lab.builder(name) if name else the_lab.builders[0]
    return KernelBuilder(
        repository=Path(repo),
        cache=settings.cache_dir,
        ansible=Ansible(resource("playbooks"), the_lab.inventory, stop),
        host=host.name,
        jobs=settings.jobs or host.variables.jobs,
    )


def testbed(settings: Settings, the_lab: Lab, spec: TestbedSpec, stop: Stop | None = None) -> Testbed:
    """Return one testbed of the lab, ready to boot kernels."""
    from bisector.adapters.ansible import Ansible

    ansible = Ansible(resource("playbooks"), the_lab.inventory, stop)
    match spec.variables.kind:
        case "libvirt":
            from bisector.adapters.libvirt_testbed import LibvirtTestbed

            return LibvirtTestbed(spec, ansible, settings.cache_dir, settings.state_dir)
        case "ssh":
            from bisector.adapters.ssh_testbed import SSHTestbed

            return SSHTestbed(spec, ansible)
        case "local":
            from bisector.adapters.local_testbed import LocalTestbed

            return LocalTestbed(spec.name)


def try_workload(workload: Workload, runs: int, folder: Path, progress: Progress) -> Iterator[RunResult]:
    """Run a workload on this machine, under the kernel it has; warm-up runs come first and are given as well.

    folder: where its program is built and its output kept. Raises as `ports.Session.run` does.
    """
    from bisector.adapters.local_testbed import LocalTestbed, running_kernel
    from bisector.adapters.payload import workload_job

    job = workload_job(workload, folder)
    session = LocalTestbed().boot(running_kernel(), job, folder, progress)
    try:
        for index in range(job.warmup + runs):
            yield session.run(index)
    finally:
        session.leave()


def measure_commit(
    settings: Settings,
    workload: Workload,
    order: BuildOrder,
    runs: int,
    folder: Path,
    progress: Progress,
    *,
    testbed_name: str | None = None,
) -> Iterator[RunResult]:
    """Build one commit, boot it once on a testbed and run the workload there, as a bisection does.

    Warm-up runs come first and are given as well. Raises KernelError (the commit), Busy while a bisection
    runs in this state folder, InfrastructureError.
    """
    from bisector.adapters.payload import workload_job
    from bisector.engine import executor

    the_lab = lab(settings)
    spec = the_lab.testbed(testbed_name or the_lab.testbeds[0].name)
    machine = testbed(settings, the_lab, spec)
    workload.check_clock(machine.clock)
    with executor.lock(settings.state_dir, f"run of {workload.name} on {spec.name}"):
        kernel = builder(settings, settings.repo or Path.cwd(), the_lab).build(order, progress)
        job = workload_job(workload, folder / "workload")
        session = machine.boot(kernel, job, folder, progress)
        try:
            for index in range(job.warmup + runs):
                yield session.run(index)
        finally:
            session.leave()


def planner(settings: Settings, workload: str, testbeds: Sequence[str], metric: str) -> Planner:
    """Return the planner, with the noise of the first testbed that was calibrated as its prior."""
    from bisector.adapters.calibrations import library
    from bisector.core.planner import Planner as CorePlanner

    for name in testbeds:
        prior = library(settings.state_dir, workload, name, metric)
        if prior is not None:
            return CorePlanner(library=prior)
    return CorePlanner()


def goal_of(request: Request, workload: Workload, clock: str) -> Goal:
    """Return what the planner is told: the deciding metric with its threshold, alpha, budget and clock."""
    metric = workload.metric(request.metric)
    if request.threshold is not None:
        try:
            metric = dataclasses.replace(metric, threshold=parse_threshold(request.threshold, metric.unit))
        except ValueError as error:
            raise RequestError(f"--threshold: {error}") from error
    if clock not in ("wall", "instructions"):
        raise InfrastructureError(f"a testbed has the unknown clock '{clock}'")
    return Goal(
        metric=metric,
        alpha=request.alpha,
        budget=request.budget,
        clock="instructions" if clock == "instructions" else "wall",
        scan=request.scan,
    )


def accept(settings: Settings, request: Request) -> tuple[Accepted, CommitGraph]:
    """Resolve everything in a request, or refuse it: RequestError, and nothing was changed."""
    from bisector.adapters.payload import checksum

    workload = load_workload(request.workload)
    workload.metric(request.metric)
    _known_recipe(request.recipe)
    repository = source(settings, request.repo)
    good, bad = repository.resolve(request.good), repository.resolve(request.bad)
    graph = repository.graph(
        good, bad, first_parent=request.first_parent, paths=request.paths, skip=request.skip
    )
    _check_ends(settings, repository, request, good, bad)
    request = request.model_copy(
        update={"recipe": recipe_for(settings, request.recipe, request.repo, good, bad)}
    )
    the_lab = lab(settings)
    names = request.testbeds or (the_lab.testbeds[0].name,)
    testbeds = [testbed(settings, the_lab, the_lab.testbed(name)) for name in names]
    clocks = {bed.clock for bed in testbeds}
    if len(clocks) > 1:
        raise RequestError(
            "testbeds with different clocks cannot be compared",
            details="\n".join(f"{bed.name}: {bed.clock}" for bed in testbeds),
            cure="name testbeds of one clock with --testbed",
        )
    clock = clocks.pop()
    workload.check_clock(clock)
    accepted = Accepted(
        request=request,
        good=good,
        bad=bad,
        goal=serial.goal_to_json(goal_of(request, workload, clock)),
        testbeds=tuple(names),
        clock=clock,
        workload=workload.name,
        workload_sum=checksum(workload.folder),
        patch_sums=tuple(_digest(Path(path)) for path in request.apply),
        version=bisector.__version__,
    )
    return accepted, graph


def recipe_for(settings: Settings, name: str, repo: str | Path, *shas: str) -> str:
    """Return the one recipe by which all of these commits are built: the one that is named.

    For 'auto' it is the one for the youngest kernels that covers them. Raises RequestError if there is none.
    """
    from bisector.adapters.kernel_tree import KernelTrees, patched_trees
    from bisector.spec.recipe import AUTO, DEFAULT_RECIPE, choose_recipe

    _known_recipe(name)
    if name != AUTO:
        return name
    trees = KernelTrees(Path(repo), patched_trees(settings.cache_dir))
    try:
        return choose_recipe([trees.release(sha) for sha in shas])
    except SourceFailed:  # its Makefile names no release; what is wrong with it, the build will tell
        return DEFAULT_RECIPE


def _known_recipe(name: str) -> None:
    from bisector.spec.recipe import AUTO, load_recipe

    if name != AUTO:
        load_recipe(name)


def _check_ends(settings: Settings, repository: Source, request: Request, good: str, bad: str) -> None:
    """Refuse ends that no builder could build: inside the range such a commit is a skip, here all is lost."""
    for name, sha in (("good", good), ("bad", bad)):
        if not repository.holds_linux(sha):
            raise RequestError(
                f"the {name} end {sha[:12]} holds no Linux kernel",
                details="its tree has no Makefile, or neither 'kernel' nor 'Kbuild'",
                cure="give the git tree of the kernel with --repo, and two of its commits",
            )
    if request.apply:
        from bisector.adapters.kernel_tree import KernelTrees, patched_trees

        trees = KernelTrees(Path(request.repo), patched_trees(settings.cache_dir))
        for name, sha in (("good", good), ("bad", bad)):
            try:
                trees.tree(sha, tuple(Path(path) for path in request.apply))
            except SourceFailed as error:
                raise RequestError(
                    f"--apply: {error.message}, the {name} end",
                    details=error.details,
                    cure="give a patch that applies to both ends; where it does not in between is a skip",
                ) from error


def services(settings: Settings, accepted: Accepted, stop: Stop | None = None) -> Services:
    """Return real adapters for an accepted request.

    Raises RequestError when a patch file has changed since, so that tested kernels would not be the same.
    """
    from bisector.adapters.orphans import end_orphans
    from bisector.adapters.payload import workload_job
    from bisector.engine.services import Services

    request = accepted.request
    for path, known in zip(request.apply, accepted.patch_sums, strict=True):
        if _digest(Path(path)) != known:
            raise RequestError(
                f"the patch {path} has changed since the bisection began", cure="start a new one"
            )
    workload = load_workload(request.workload)
    the_lab = lab(settings)
    testbeds: Mapping[str, Testbed] = {
        name: testbed(settings, the_lab, the_lab.testbed(name), stop) for name in accepted.testbeds
    }
    goal = accepted.the_goal()
    return Services(
        source=source(settings, request.repo),
        builders=[
            partial(builder, settings, request.repo, the_lab, name=host.name) for host in the_lab.builders
        ],
        testbeds=testbeds,
        store=store(settings),
        planner=planner(settings, accepted.workload, accepted.testbeds, goal.metric.name),
        clock=SystemClock(),
        make_job=lambda folder: workload_job(workload, folder),
        state_dir=settings.state_dir,
        patches=tuple(Path(path) for path in request.apply),
        boot_notes=_guest_notes(settings, the_lab, accepted.testbeds),
        one_host=any(host.reach.local for host in the_lab.builders),
        tidy=end_orphans,
    )


def _guest_notes(settings: Settings, the_lab: Lab, testbeds: Sequence[str]) -> dict[str, str]:
    """Return the checksum of the guest image if guests measure; not yet known before the very first boot."""
    if all(the_lab.testbed(name).variables.kind != "libvirt" for name in testbeds):
        return {}
    from bisector.adapters.guest_image import GuestImages

    image = GuestImages(settings.cache_dir).present()
    return {"image": image.checksum} if image is not None else {}


def order(sha: str, recipe: str, layout: int = 0, patches: Sequence[Path] = ()) -> BuildOrder:
    """Return the order for one build by hand."""
    from bisector.ports import BuildOrder

    return BuildOrder(sha, recipe, layout, tuple(patches))


def host_checks(settings: Settings, progress: Progress, *, probe: bool = False) -> list[Check]:
    """Return what this machine needs for building and measuring, and whether it has it.

    probe: boot again to see whether KVM works, else take the remembered answer.
    """
    from bisector.adapters.host import checks, has_libvirt

    found = checks(settings.cache_dir)
    if has_libvirt():
        from bisector.adapters.guest_checks import guest_checks

        found += guest_checks(settings.cache_dir, progress, probe=probe)
    return found


def prepare_guests(settings: Settings, progress: Progress) -> None:
    """Start libvirt, build the guest image and probe KVM, as far as that is not done. Raises what fails."""
    from bisector.adapters.host import has_libvirt

    if not has_libvirt():
        raise InfrastructureError("libvirt-python is not in this Python environment", cure="make deps")
    from bisector.adapters.guest_checks import prepare_guests as prepare

    prepare(settings.cache_dir, progress)


def host_description() -> dict[str, str]:
    """Return what a report says of this machine."""
    from bisector.adapters.host import description

    return description()


def lab_checks(settings: Settings, the_lab: Lab) -> Iterator[tuple[str, Callable[[], None]]]:
    """Return (machine, check); a check raises what is wrong with the machine."""
    from bisector.adapters.lab_check import lab_checks as checks

    return checks(the_lab, settings.cache_dir)


def calibration(
    settings: Settings,
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
    from bisector.adapters import calibrations
    from bisector.adapters.payload import workload_job
    from bisector.engine import executor
    from bisector.engine.calibrate import Measured, measure

    if boots < 2 or runs < 2:
        raise RequestError("an A/A measurement needs at least two boots with two runs each")
    manifest = load_workload(workload)
    unit = manifest.metric(metric)
    the_lab = lab(settings)
    spec = the_lab.testbed(testbed_name or the_lab.testbeds[0].name)
    repo = settings.repo or Path.cwd()
    sha = source(settings, repo).resolve(rev)
    machine = testbed(settings, the_lab, spec)
    manifest.check_clock(machine.clock)
    path = calibrations.path_of(settings.state_dir, manifest.name, spec.name, unit.name)
    folder = path.with_suffix("")
    with executor.lock(settings.state_dir, f"calibration of {manifest.name} on {spec.name}"):
        job = workload_job(manifest, folder / "workload")
        wanted = order(sha, recipe_for(settings, recipe, repo, sha))
        facts = {
            "commit": sha,
            "recipe": wanted.recipe,
            "payload": job.checksum,
            "clock": machine.clock,
            "unit": unit.unit,
        }
        kept = calibrations.load(path)
        if kept is None or fresh or kept.facts != facts:
            kept = calibrations.Kept(facts)

        def keep(one: Measured) -> None:
            nonlocal kept
            assert kept is not None
            kept = kept.plus(one.boot, one.boot_seconds, one.run_seconds)
            calibrations.save(path, kept)

        todo = range(len(kept.boots), boots)
        if todo:
            kernel = builder(settings, repo, the_lab).build(wanted, progress)
            measure(
                kernel,
                [machine],
                job,
                unit.name,
                boots=todo,
                runs=runs,
                folder=folder,
                clock=SystemClock(),
                progress=progress,
                on_boot=keep,
            )
    return kept.analyse(settings.alpha), path


def _digest(path: Path) -> str:
    import hashlib

    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise RequestError(f"the patch {path} cannot be read", details=str(error)) from error
