"""The composition root: settings and a request become real adapters. Tests pass their own `Services`.

Adapters are imported where they are made: `perfbisect --help` must not wait for libvirt or SQLAlchemy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.errors import InfrastructureError, RequestError
from bisector.resources import resource
from bisector.schemas.request import Accepted
from bisector.schemas.settings import Settings
from bisector.schemas.workload.workload import Workload

if TYPE_CHECKING:
    from bisector.adapters.build.builder import KernelBuilder
    from bisector.adapters.git.trees import KernelTrees
    from bisector.adapters.system.host_requirements import Check
    from bisector.engine.services import Services
    from bisector.ports import Progress, Source, Store, Testbed
    from bisector.schemas.lab import Lab, TestbedSpec
    from bisector.search.planner import Planner
    from bisector.stats.aa_analysis import Known

Stop = Callable[[], bool]
"""Asked while something long runs; True ends it and raises Interrupted."""


class SystemClock:
    """ports.Clock: this host's."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        return time.time()


def store(settings: Settings) -> Store:
    """Open the store of the state folder."""
    from bisector.adapters.store.sql_store import SqlStore

    return SqlStore(settings.state_dir / "perfbisect.sqlite")


def source(settings: Settings, repo: str | Path) -> Source:
    """Open a kernel repository. Raises RequestError if it is none."""
    from bisector.adapters.git.source import GitSource

    return GitSource(Path(repo).expanduser(), cache_dir=settings.cache_dir / "graphs")


def lab(settings: Settings) -> Lab:
    """Read the lab's inventory. Raises RequestError naming the host and variable that is wrong."""
    from bisector.adapters.ansible.inventory import default_inventory, read_lab

    return read_lab(settings.lab or default_inventory(), settings.cache_dir)


def trees(settings: Settings, repo: str | Path) -> KernelTrees:
    """Return the trees of a repository, with patches and edits put into them where builds keep theirs."""
    from bisector.adapters.git.trees import KernelTrees, patched_trees

    return KernelTrees(Path(repo), patched_trees(settings.cache_dir))


def builder(
    settings: Settings,
    repo: str | Path,
    the_lab: Lab,
    stop: Stop | None = None,
    name: str | None = None,
    *,
    install: bool = False,
) -> KernelBuilder:
    """Return a builder of the lab, its first unless named, for a repository.

    install: whether it may install the Debian packages that it lacks.
    """
    from bisector.adapters.ansible.runner import Ansible
    from bisector.adapters.build.builder import KernelBuilder

    if not the_lab.builders:
        raise RequestError(f"the inventory {the_lab.inventory} has no host in the group 'builders'")
    host = the_lab.builder(name) if name else the_lab.builders[0]
    return KernelBuilder(
        repository=Path(repo),
        cache=settings.cache_dir,
        ansible=Ansible(resource("playbooks"), the_lab.inventory, stop),
        host=host.name,
        jobs=settings.jobs or host.variables.jobs,
        mirror=settings.toolchain_mirror,
        install=install,
    )


def testbed(settings: Settings, the_lab: Lab, spec: TestbedSpec, stop: Stop | None = None) -> Testbed:
    """Return one testbed of the lab, ready to boot kernels."""
    from bisector.adapters.ansible.runner import Ansible

    ansible = Ansible(resource("playbooks"), the_lab.inventory, stop)
    match spec.variables.kind:
        case "libvirt":
            from bisector.adapters.guest.libvirt_testbed import LibvirtTestbed

            return LibvirtTestbed(spec, ansible, settings.cache_dir, settings.state_dir)
        case "ssh":
            from bisector.adapters.machine.ssh_testbed import SSHTestbed

            return SSHTestbed(spec, ansible)
        case "local":
            from bisector.adapters.machine.local_testbed import LocalTestbed

            settings_of_lab = spec.variables.environment.settings()
            return LocalTestbed(spec.name, spec.variables.block_device, settings_of_lab)


def planner(settings: Settings, workload: str, testbeds: Sequence[str], metric: str) -> Planner:
    """Return the planner, with the noise of the first testbed that was calibrated as its prior."""
    from bisector.search.planner import Planner as CorePlanner

    found = calibrated(settings, workload, testbeds, metric)
    return CorePlanner(calibrated_noise=found.library if found is not None else None)


def calibrated(settings: Settings, workload: str, testbeds: Sequence[str], metric: str) -> Known | None:
    """Return what 'perfbisect calibrate' measured of a workload on the first testbed where it did."""
    from bisector.adapters.store.calibrations import load_known

    return load_known(settings.state_dir, workload, testbeds, metric)


def services(settings: Settings, accepted: Accepted, stop: Stop | None = None) -> Services:
    """Return real adapters for an accepted request.

    Raises RequestError when a patch or the recipe has changed since, so that kernels would be made otherwise.
    """
    from bisector.adapters.agent.payload import workload_job
    from bisector.adapters.system.orphans import end_orphans
    from bisector.app.accept import check_unchanged, workload_of
    from bisector.app.pruning import Pruning
    from bisector.engine.services import Services
    from bisector.ports import Fix
    from bisector.schemas.kernel.recipe import load_recipe

    request = accepted.request
    check_unchanged(settings, accepted)
    workload = workload_of(request)
    the_lab = lab(settings)
    testbeds: Mapping[str, Testbed] = {
        name: testbed(settings, the_lab, the_lab.testbed(name), stop) for name in accepted.testbeds
    }
    goal = accepted.the_goal()
    arch = load_recipe(request.recipe).manifest.arch
    return Services(
        source=source(settings, request.repo),
        builders=[
            partial(builder, settings, request.repo, the_lab, name=host.name) for host in the_lab.builders
        ],
        testbeds=testbeds,
        store=store(settings),
        planner=planner(settings, accepted.workload, accepted.testbeds, goal.metric.name),
        clock=SystemClock(),
        make_job=lambda folder: workload_job(workload, folder, arch),
        state_dir=settings.state_dir,
        patches=tuple(Path(path) for path in request.apply),
        fixes=tuple(Fix(fix.sha, fix.guilty) for fix in accepted.fixes),
        guest_image=_guest_image(settings, the_lab, accepted, workload),
        one_host=any(host.connection.local for host in the_lab.builders),
        tidy=end_orphans,
        irrelevant=Pruning.of(settings, accepted),
    )


def _guest_image(settings: Settings, the_lab: Lab, accepted: Accepted, workload: Workload) -> str:
    """Return the checksum of the guest image if guests measure; '' before the very first boot.

    Guests without a disk say themselves what they are made of.
    """
    from bisector.schemas.kernel.recipe import load_recipe

    if load_recipe(accepted.request.recipe).manifest.userspace == "initramfs":
        return ""
    if all(the_lab.testbed(name).variables.kind != "libvirt" for name in accepted.testbeds):
        return ""
    from bisector.adapters.guest.rootfs import GuestImages

    image = GuestImages(settings.cache_dir, workload.manifest.packages()).present()
    return image.checksum if image is not None else ""


def host_checks(settings: Settings, progress: Progress, *, probe: bool = False) -> list[Check]:
    """Return what this machine needs for building and measuring, and whether it has it.

    probe: boot again to see whether KVM works, else take the remembered answer.
    """
    from bisector.adapters.system.host_requirements import checks, has_libvirt

    found = checks(settings.cache_dir)
    if has_libvirt():
        from bisector.adapters.guest.preflight import guest_checks

        found += guest_checks(settings.cache_dir, progress, probe=probe)
    return found


def prepare_guests(settings: Settings, progress: Progress) -> None:
    """Start libvirt, build the guest image and probe KVM, as far as that is not done. Raises what fails."""
    from bisector.adapters.system.host_requirements import has_libvirt

    if not has_libvirt():
        raise InfrastructureError("libvirt-python is not in this Python environment", cure="make deps")
    from bisector.adapters.guest.preflight import prepare_guests as prepare

    prepare(settings.cache_dir, progress)


def host_description() -> dict[str, str]:
    """Return what a report says of this machine."""
    from bisector.adapters.system.host_requirements import description

    return description()


def lab_checks(settings: Settings, the_lab: Lab) -> Iterator[tuple[str, Callable[[], None]]]:
    """Return (machine, check); a check raises what is wrong with the machine."""
    from bisector.adapters.machine.lab_check import lab_checks as checks

    return checks(the_lab, settings.cache_dir)
