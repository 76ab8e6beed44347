"""The services of a bisection: real adapters for an accepted request."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.app.accept import check_unchanged, workload_of
from bisector.app.artefacts import shared_files
from bisector.app.execution.commit_weights import CommitWeights
from bisector.app.execution.function_weights import FunctionWeights
from bisector.app.execution.killed_work import end_killed_work
from bisector.app.packages.listed_sources import source_of, unpacker
from bisector.app.planners import planner_of
from bisector.app.pruning import Pruning
from bisector.app.series.series_store import hour_caps
from bisector.app.testbeds.testbed_use import quarantine
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError, RequestError
from bisector.schemas.kernel.patch_files import check_patches
from bisector.schemas.request import Accepted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bisector.adapters.build.kernel_share import KernelShare
    from bisector.engine.build_queue import MakeBuilder
    from bisector.engine.services import Services
    from bisector.model.records import FunctionEvidence
    from bisector.model.state import State
    from bisector.ports import Builder, Progress
    from bisector.schemas.workload.workload import Workload


def bisection_services(
    wiring: Wiring, accepted: Accepted, stop: threading.Event, names: Sequence[str] | None = None
) -> Services:
    """Return real adapters for an accepted request. names: of its testbeds, by default all of them.

    Raises RequestError when a patch, the recipe or the workload has changed since, so that kernels would be
    made or measured otherwise; InfrastructureError when this host's repository lacks its commits, and
    no remote gives them.
    """
    from bisector.adapters.agent.payload import workload_job
    from bisector.adapters.machine.use_note import UseNote
    from bisector.engine.availability import Availability
    from bisector.engine.services import Services
    from bisector.engine.shares.hour_counter import HourCounter
    from bisector.ports import Fix
    from bisector.schemas.kernel.recipe import load_recipe

    request = accepted.request
    if not accepted.kernels:
        _fetch_missing(accepted)
    check_unchanged(wiring, accepted)
    workload = workload_of(request)
    _require_same_reading(accepted, workload)
    arch = load_recipe(request.recipe).manifest.arch
    share = shared_files.kernel_share(wiring)
    missing = missing_testbeds(wiring, accepted)
    used = [name for name in names or accepted.testbeds if name not in missing]
    if not used:
        raise RequestError(
            f"none of the bisection's testbeds is in the inventory any more: {', '.join(missing)}",
            cure="put one back under its name",
        )
    testbeds = {name: wiring.testbed(name, stop.is_set) for name in used}
    _require_same_clock(accepted, {name: testbed.clock for name, testbed in testbeds.items()})
    return Services(
        source=source_of(wiring, accepted),
        builders=_builders(wiring, accepted, share),
        testbeds=testbeds,
        store=wiring.store,
        planner=planner_of(wiring, accepted),
        clock=wiring.clock,
        make_job=lambda folder: workload_job(workload, folder, arch, explain=accepted.searches),
        state_dir=wiring.settings.state_dir,
        patches=tuple(Path(path) for path in request.apply),
        patched=_patched(accepted),
        coordinator=wiring.shared_coordinator,
        why_not=Availability(wiring.coordinator, wiring.settings.owner).why_not,
        hours=HourCounter(wiring.coordinator, partial(hour_caps, wiring)),
        stop=stop,
        served_by=lambda worker: any(wiring.lab.testbed(n).variables.worker in ("", worker) for n in used),
        fixes=tuple(Fix(fix.sha, fix.guilty) for fix in accepted.fixes),
        guest_image=guest_image(wiring, accepted, workload, used),
        measuring_builders=frozenset()
        if accepted.kernels
        else wiring.measuring_builders(name for name, testbed in testbeds.items() if testbed.clock == "wall"),
        claim=wiring.claim_testbed,
        tidy=partial(_tidy, wiring.settings.cache_dir),
        irrelevant=Pruning.of(wiring.settings, accepted) if _has_history(accepted) else lambda graph: None,
        weigh=CommitWeights.of(wiring.settings, accepted) if _has_history(accepted) else lambda *_: None,
        functions=_functions(accepted, stop),
        keep_boot=partial(shared_files.keep_boot, wiring),
        suspect=partial(quarantine, wiring),
        left=lambda testbed: UseNote(wiring.settings.state_dir, testbed).is_of_another(),
        executes_as=partial(shared_files.lease_as, share),
    )


def _require_same_reading(accepted: Accepted, workload: Workload) -> None:
    """Refuse a command whose number an earlier version read in another way, leaving out its unit."""
    from bisector.adapters.agent.workload_sources import source_checksum

    if not workload.script or workload.manifest.parse != "regex":
        return
    if source_checksum(workload) != accepted.workload_sum:
        raise RequestError(
            f"the number '{accepted.request.metric}' was read otherwise when the bisection began",
            details=f"it was begun by version {accepted.version or 'unknown'}",
            cure="start a new one: its runs do not compare with those so far",
        )


def _require_same_clock(accepted: Accepted, clocks: Mapping[str, str]) -> None:
    """Refuse testbeds whose clock is another one by now: guests have KVM, or have it no more."""
    for name, clock in clocks.items():
        if clock != accepted.clock:
            raise RequestError(
                f"the testbed '{name}' measures with the clock '{clock}' now, and this bisection began with "
                f"'{accepted.clock}'",
                details="runs under different clocks do not compare",
                cure=f"set 'perfbisect_clock: {accepted.clock}' for it in the inventory ('perfbisect init' "
                "writes one; 'perfbisect doctor' says whether KVM works), or start a new bisection",
            )


def _fetch_missing(accepted: Accepted) -> None:
    """Fetch the commits that the accepting host had; all others are in their history."""
    from bisector.adapters.git.fetching import fetch_commits

    named = [accepted.bad, accepted.good, *(sha for fix in accepted.fixes for sha in (fix.sha, *fix.guilty))]
    if accepted.attempt is not None and not accepted.attempt.patches:
        named.append(accepted.attempt.tried)
    repo = Path(accepted.request.repo).expanduser()
    if not repo.is_dir() or not any(repo.iterdir()):  # it was moved, or is not mounted
        raise InfrastructureError(
            f"the bisection's repository is no longer in {repo}",
            cure=f"put it or a link to it there again, or fetch its commits there; it has {named[0][:12]}",
        )
    fetch_commits(repo, named)


def _patched(accepted: Accepted) -> dict[str, tuple[str, tuple[Path, ...]]]:
    """Return the patched kernel of a try; raise RequestError where a patch has changed since it began."""
    attempt = accepted.attempt
    if attempt is None or not attempt.patches:
        return {}
    check_patches(attempt.patches, attempt.sums)
    return {attempt.tried: (attempt.unpatched, tuple(map(Path, attempt.patches)))}


def _tidy(cache: Path, bisection: Path) -> None:
    """End and remove what killed processes left: programs, temporary files. bisection: its folder."""
    from bisector.adapters.artefacts import exchange
    from bisector.adapters.system import leftovers

    end_killed_work(cache)
    leftovers.remove_leftovers(exchange.TEMPORARY_PREFIX, bisection)
    leftovers.remove_leftovers_of_boots(bisection)


def _has_history(accepted: Accepted) -> bool:
    """Return whether the search is over commits, some of which may not change the kernel."""
    return accepted.searches and not accepted.kernels


def _functions(
    accepted: Accepted, stop: threading.Event
) -> Callable[[State, Progress], FunctionEvidence | None]:
    """Return what judges commits by the functions that they change, if each one's changes are its own."""
    if not _has_history(accepted) or accepted.request.first_parent:
        return lambda *_: None
    return FunctionWeights.of(accepted, stop)


def _builders(wiring: Wiring, accepted: Accepted, share: KernelShare | None) -> list[MakeBuilder]:
    if accepted.kernels:
        return [partial(unpacker, wiring, accepted.kernels)]
    repo = accepted.request.repo
    return [partial(_builder, wiring, repo, share, host.name) for host in wiring.lab.builders]


def _builder(
    wiring: Wiring, repo: str, share: KernelShare | None, host: str, stop: Callable[[], bool]
) -> Builder:
    return wiring.builder(repo, host, stop=stop, share=share)


def missing_testbeds(wiring: Wiring, accepted: Accepted) -> tuple[str, ...]:
    """Return the testbeds of a bisection that the inventory has no more."""
    known = {spec.name for spec in wiring.lab.testbeds}
    return tuple(name for name in accepted.testbeds if name not in known)


def guest_image(wiring: Wiring, accepted: Accepted, workload: Workload, testbeds: Sequence[str]) -> str:
    """Return the checksum of the guest image if a testbed is a guest; '' before the very first boot.

    Guests without a disk say themselves what they are made of.
    """
    from bisector.schemas.kernel.recipe import load_recipe

    if load_recipe(accepted.request.recipe).manifest.userspace == "initramfs":
        return ""
    if all(wiring.lab.testbed(name).variables.kind != "libvirt" for name in testbeds):
        return ""
    from bisector.adapters.guest.rootfs import GuestImages

    image = GuestImages(wiring.settings.cache_dir, workload.manifest.packages()).present()
    return image.checksum if image is not None else ""
