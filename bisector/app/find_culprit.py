"""The use case of perfbisect: a request becomes a bisection that is run to its conclusion and reported.

`find_culprit` reads like the picture in the README: accept, begin, run, report.
"""

from __future__ import annotations

import json
import threading
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bisector.adapters.system.files import write_atomically
from bisector.app import bisections
from bisector.app.accept import accept, check_patches, check_unchanged, missing_monitors, workload_of
from bisector.app.load_report import find_bisection, keep_names, load_material
from bisector.app.plan import expected_work
from bisector.app.pruning import Pruning
from bisector.app.readiness import require_ready
from bisector.app.time_left import ExpectedWork
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError, PerfbisectError, RequestError
from bisector.model.decisions import Conclusion
from bisector.report import phrases
from bisector.schemas.request import Accepted, Request, read_accepted

if TYPE_CHECKING:
    from collections.abc import Callable

    from bisector.engine.events import OnEvent
    from bisector.engine.services import Services
    from bisector.model.commit_graph import CommitGraph
    from bisector.model.stored_bisection import Stored
    from bisector.ports import Builder
    from bisector.report.report_model import Material
    from bisector.schemas.workload.workload import Workload


class Observer(Protocol):
    """Who watches a bisection."""

    stop: threading.Event
    """Set to interrupt the bisection; it can be resumed."""

    def note(self, text: str) -> None:
        """Take one line about what happens around the search."""
        ...

    def progress(
        self, label: Callable[[int], str], expected: ExpectedWork | None
    ) -> AbstractContextManager[OnEvent]:
        """Return what takes the search's events. label: names a commit of the graph."""
        ...


def find_culprit(wiring: Wiring, request: Request, observer: Observer) -> Material:
    """Find the commit that made a workload slower; return its report, which is also written to files.

    The same request goes on where an unfinished bisection stopped. Raises RequestError, InfrastructureError
    or Interrupted: it can be resumed.
    """
    try:
        accepted, graph = accept(wiring, request)
    except InfrastructureError:  # one thing that is missing; there may be more
        require_ready(wiring, request)
        raise
    require_ready(wiring, accepted.request)
    for note in (*missing_monitors(accepted), *wiring.source_of(request).notes()):
        observer.note(f"note: {note}")
    stored, is_new = bisections.begin(wiring.store, accepted, graph, wiring.clock.now())
    observer.note(
        f"bisection {stored.id}: {'' if is_new else 'going on with '}{sum(graph.candidate)} candidates, "
        f"decided by {accepted.the_goal().metric.name}, clock '{accepted.clock}'"
    )
    observer.note(f"recipe {phrases.recipe(accepted.request.recipe, accepted.recipe_chosen)}")
    return _run_and_report(wiring, stored, accepted, observer)


def try_change(wiring: Wiring, accepted: Accepted, graph: CommitGraph, observer: Observer) -> Material:
    """Measure whether a change mends a culprit; otherwise as `find_culprit`. See `app/attempts`."""
    require_ready(wiring, accepted.request)
    stored, is_new = bisections.begin(wiring.store, accepted, graph, wiring.clock.now())
    observer.note(f"{stored.id}: {'' if is_new else 'going on with '}three kernels side by side")
    return _run_and_report(wiring, stored, accepted, observer)


def resume(wiring: Wiring, identity: str | None, observer: Observer) -> Material:
    """Go on with a bisection, the latest that has not ended if none is named; otherwise as `find_culprit`."""
    if identity is None:
        unfinished = [s for s in wiring.store.list() if s.status not in bisections.ENDED]
        if not unfinished:
            latest = find_bisection(wiring, None)  # raises where there is none
            raise RequestError(
                f"there is nothing to resume: every bisection has ended, '{latest.id}' last",
                cure="'perfbisect list' shows them; 'perfbisect start' begins another",
            )
        stored = wiring.store.load(unfinished[0].id)
    else:
        stored = find_bisection(wiring, identity)
    if stored.status in ("cancelled", bisections.REMOVING):
        raise RequestError(
            f"the bisection '{stored.id}' was {'cancelled' if stored.status == 'cancelled' else 'removed'}",
            cure="'perfbisect start' with its request begins anew",
        )
    accepted = read_accepted(stored.request)
    observer.note(f"bisection {stored.id}: going on")
    if stored.conclusion is None:
        require_ready(wiring, accepted.request)
    return _run_and_report(wiring, stored, accepted, observer)


def _run_and_report(wiring: Wiring, stored: Stored, accepted: Accepted, observer: Observer) -> Material:
    _record_host(wiring, stored.id)
    try:
        _run(wiring, stored, accepted, observer)
    except BaseException:
        _write_reports(wiring, stored.id, observer)
        raise
    return _write_reports(wiring, stored.id, observer) or load_material(wiring, stored.id)


def _run(wiring: Wiring, stored: Stored, accepted: Accepted, observer: Observer) -> Conclusion:
    """Run to the end, or wait for another process that works in this state folder, and watch it."""
    repository = wiring.source_of(accepted.request)

    def label(index: int) -> str:
        sha, attempt = stored.graph.shas[index], accepted.attempt
        if attempt is not None and attempt.patches and sha == attempt.tried:
            return f"{sha[:12]} ({attempt.tried_name()})"
        try:
            return f'{sha[:12]} ("{repository.infos([sha])[0].subject}")'
        except PerfbisectError:
            return sha[:12]

    wiring.doing = f"bisection '{stored.id}'"
    with observer.progress(label, _expected(wiring, stored, accepted)) as on_event:
        services = bisection_services(wiring, accepted, observer.stop)
        open_other = partial(_open_other, wiring)
        return bisections.run(stored, services, on_event, observer.stop, open_other)


def _open_other(wiring: Wiring, stored: Stored, stop: threading.Event) -> Services:
    """Return real adapters for a bisection that another process has queued."""
    accepted = read_accepted(stored.request)
    wiring.source_of(accepted.request)  # says whether its repository is trusted
    return bisection_services(wiring, accepted, stop)


def bisection_services(wiring: Wiring, accepted: Accepted, stop: threading.Event) -> Services:
    """Return real adapters for an accepted request.

    Raises RequestError when a patch or the recipe has changed since, so that kernels would be made otherwise.
    """
    from bisector.adapters.agent.payload import workload_job
    from bisector.engine.services import Services
    from bisector.ports import Fix
    from bisector.schemas.kernel.recipe import load_recipe

    request = accepted.request
    check_unchanged(wiring, accepted)
    workload = workload_of(request)
    arch = load_recipe(request.recipe).manifest.arch
    testbeds = {name: wiring.testbed(name, stop.is_set) for name in accepted.testbeds}
    return Services(
        source=wiring.source_of(request),
        builders=[partial(_builder, wiring, request.repo, host.name) for host in wiring.lab.builders],
        testbeds=testbeds,
        store=wiring.store,
        planner=wiring.planner(accepted),
        clock=wiring.clock,
        make_job=lambda folder: workload_job(workload, folder, arch),
        state_dir=wiring.settings.state_dir,
        patches=tuple(Path(path) for path in request.apply),
        patched=_patched(accepted),
        fixes=tuple(Fix(fix.sha, fix.guilty) for fix in accepted.fixes),
        guest_image=guest_image(wiring, accepted, workload),
        measuring_builders=wiring.measuring_builders(
            name for name, testbed in testbeds.items() if testbed.clock == "wall"
        ),
        claim=wiring.claim_testbed,
        tidy=partial(_tidy, wiring.settings.cache_dir),
        irrelevant=Pruning.of(wiring.settings, accepted) if accepted.attempt is None else lambda graph: None,
    )


def _patched(accepted: Accepted) -> dict[str, tuple[str, tuple[Path, ...]]]:
    """Return the patched kernel of a try; raise RequestError where a patch has changed since it began."""
    attempt = accepted.attempt
    if attempt is None or not attempt.patches:
        return {}
    check_patches(attempt.patches, attempt.sums)
    return {attempt.tried: (attempt.unpatched, tuple(map(Path, attempt.patches)))}


def _tidy(cache: Path, bisection: Path) -> None:
    """End and remove what killed processes left: programs, temporary files. bisection: its folder."""
    from bisector.adapters.ansible.runner import TEMPORARY_PREFIX
    from bisector.adapters.build.builder import WORKSPACE_PREFIX
    from bisector.adapters.system import leftovers, orphans

    orphans.end_orphans()
    leftovers.remove_leftovers(TEMPORARY_PREFIX)
    leftovers.remove_leftovers(WORKSPACE_PREFIX, cache / "kernels")
    leftovers.remove_leftovers_of_boots(bisection)


def _builder(wiring: Wiring, repo: str, host: str, stop: Callable[[], bool]) -> Builder:
    return wiring.builder(repo, host, stop=stop)


def guest_image(wiring: Wiring, accepted: Accepted, workload: Workload) -> str:
    """Return the checksum of the guest image if guests measure; '' before the very first boot.

    Guests without a disk say themselves what they are made of.
    """
    from bisector.schemas.kernel.recipe import load_recipe

    if load_recipe(accepted.request.recipe).manifest.userspace == "initramfs":
        return ""
    if all(wiring.lab.testbed(name).variables.kind != "libvirt" for name in accepted.testbeds):
        return ""
    from bisector.adapters.guest.rootfs import GuestImages

    image = GuestImages(wiring.settings.cache_dir, workload.manifest.packages()).present()
    return image.checksum if image is not None else ""


def _expected(wiring: Wiring, stored: Stored, accepted: Accepted) -> ExpectedWork | None:
    try:
        return expected_work(wiring, accepted, stored.graph)
    except RequestError:  # nothing to estimate, such as a range that is all untestable
        return None


def _record_host(wiring: Wiring, identity: str) -> None:
    """Write down what this machine is, once a bisection, so that the report shows the host that measured."""
    from bisector.adapters.system.host_requirements import description

    path = wiring.bisection_folder(identity) / "host.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(description(), indent=2) + "\n")


def _write_reports(wiring: Wiring, identity: str, observer: Observer) -> Material | None:
    """Write both forms of the report beside the bisection's data, however far it got; return what is in them.

    Nothing that goes wrong here, such as a full disk, may change how the search ended.
    """
    from bisector.report import json_report, text

    try:
        material = load_material(wiring, identity, so_far=True)
        folder = wiring.bisection_folder(identity)
        keep_names(folder, material)
        write_atomically(folder / "report.txt", text.render(material))
        write_atomically(folder / "report.json", json.dumps(json_report.render(material), indent=2) + "\n")
    except (OSError, PerfbisectError) as error:
        observer.note(f"the report could not be written: {error}; 'perfbisect report {identity}' prints it")
        return None
    return material
