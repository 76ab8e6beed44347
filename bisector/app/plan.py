"""Plan a bisection: its steps and probable cost, from simulated ones. Writes only into the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from bisector.app.planners import calibrated, planner_of
from bisector.app.pruning import Pruning
from bisector.app.time_left import ExpectedWork, WorkCounts
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError
from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Decision, Released
from bisector.model.records import Booted, Built, Irrelevant, Ran, Record
from bisector.model.state import fold

if TYPE_CHECKING:
    from bisector.schemas.request import Accepted
    from bisector.simulation.estimate import Estimate

_BUILD_SECONDS, _BOOT_SECONDS, _RUN_SECONDS = 150.0, 10.0, 3.0
"""Assumed costs before anything was measured here: those of the first demo runs, on two cores. The first
build of a tree is cold, those after it find most objects in ccache or in the output folder."""

_UNPACKING_SECONDS = 15.0
"""Unpacking a package of 26 to 34 MB with 1,000 modules took 7 to 32 s on a machine with other work."""

CACHED_SECONDS = 1.0
"""Taking a kernel from the cache: 2 s for the first one, when its builder is asked, then almost nothing."""

_BISECTIONS_ASKED = 5
"""How many of the latest bisections are asked for times: chosen, as older ones had other workloads."""


@dataclass(frozen=True, slots=True)
class ActionSeconds:
    """Mean seconds of a build, boot and run. measured: by a bisection here; source: where they are from."""

    build: float
    boot: float
    run: float
    measured: bool
    source: str


GUESSED = ActionSeconds(
    _BUILD_SECONDS, _BOOT_SECONDS, _RUN_SECONDS, False, "guessed, nothing was measured here yet"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done. first: the planner's first decision; irrelevant: None while it is unknown."""

    accepted: Accepted
    graph: CommitGraph
    first: Decision
    irrelevant: Irrelevant | None
    estimate: Estimate
    seconds: ActionSeconds

    @property
    def candidates(self) -> int:
        """How many commits may be the culprit."""
        return sum(self.graph.candidate)

    @property
    def relevant(self) -> int:
        """How many of them may change the kernel, as far as builds have shown."""
        return self.candidates - (len(self.irrelevant.commits) if self.irrelevant else 0)


def make_plan(wiring: Wiring, accepted: Accepted, graph: CommitGraph) -> Plan:
    """Return what a bisection of an accepted request would do."""
    irrelevant = None if accepted.kernels else Pruning.of(wiring.settings, accepted)(graph)
    estimate, seconds = _estimate(wiring, accepted, graph, irrelevant)
    state = fold(graph, accepted.the_goal(), (irrelevant,) if irrelevant else ())
    first = planner_of(wiring, accepted).next(state)
    assert not isinstance(first, Released), "no testbed asks"
    return Plan(accepted, graph, first, irrelevant, estimate, seconds)


def expected_work(wiring: Wiring, accepted: Accepted, graph: CommitGraph) -> ExpectedWork:
    """Return what a live display counts down from. Raises RequestError where there is nothing to search."""
    estimate, seconds = _estimate(wiring, accepted, graph, None)
    if _ends_are_built(wiring, accepted):
        seconds = replace(seconds, build=CACHED_SECONDS)
    return work_of(estimate, seconds)


def _ends_are_built(wiring: Wiring, accepted: Accepted) -> bool:
    """Return whether the kernels of both ends are in the cache: those between them will mostly be as well."""
    from bisector.adapters.build.kernel_cache import KernelCache

    entries = KernelCache(wiring.settings.cache_dir / "kernels").entries()
    built = {e.facts.get("sha") for e in entries if e.facts.get("recipe") == accepted.request.recipe}
    return {accepted.good, accepted.bad} <= built


def work_of(estimate: Estimate, seconds: ActionSeconds) -> ExpectedWork:
    """Return the expected work of an estimate."""
    work = {p: WorkCounts(use.builds, use.boots, use.runs) for p, use in estimate.by_purpose.items()}
    return ExpectedWork(work, seconds.build, seconds.boot, seconds.run)


def _estimate(
    wiring: Wiring, accepted: Accepted, graph: CommitGraph, irrelevant: Irrelevant | None
) -> tuple[Estimate, ActionSeconds]:
    from bisector.simulation.estimate import estimate

    known = calibrated(wiring, accepted)
    seconds = _measured_seconds(wiring)
    if seconds is None and known is not None:
        source = "boot and run as 'perfbisect calibrate' measured, build guessed"
        seconds = ActionSeconds(_BUILD_SECONDS, known.boot_seconds, known.run_seconds, False, source)
    if seconds is None:
        seconds = GUESSED
    if accepted.kernels:
        seconds = replace(seconds, build=_UNPACKING_SECONDS)
    excluded = {*graph.untestable, *(irrelevant.commits if irrelevant else ())}
    found = estimate(
        max(sum(graph.candidate) - len(excluded), 1),
        accepted.the_goal(),
        build_seconds=seconds.build,
        boot_seconds=seconds.boot,
        run_seconds=seconds.run,
        noise=known.noise if known is not None else None,
        testbeds=len(accepted.testbeds),
    )
    return found, seconds


def _measured_seconds(wiring: Wiring) -> ActionSeconds | None:
    """Return the means of the latest bisection that has built, booted and run."""
    if not wiring.has_store:
        return None
    for summary in wiring.store.list(limit=_BISECTIONS_ASKED):
        try:
            found = measured_seconds([record for _, record in wiring.store.records(summary.id)])
        except InfrastructureError:  # damaged, or removed just now: an estimate is no reason to fail
            continue
        if found is not None:
            return found
    return None


def measured_seconds(records: Sequence[Record]) -> ActionSeconds | None:
    """Return the means of one bisection; None if it has not built, booted and run."""
    builds = [r.seconds for r in records if isinstance(r, Built) and r.ok and not r.cached]
    boots = [r.seconds for r in records if isinstance(r, Booted) and r.ok]
    runs = [r.seconds for r in records if isinstance(r, Ran)]
    if builds and boots and runs:
        return ActionSeconds(fmean(builds), fmean(boots), fmean(runs), True, "measured here before")
    return None
