"""`perfbisect plan`: what would be done, and what it would probably cost. Changes nothing."""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING, Any

import typer

from bisector.interfaces.cli import options, output
from bisector.model.records import Booted, Built, Ran
from bisector.report.phrases import duration

if TYPE_CHECKING:
    from bisector.interfaces.cli.progress import ExpectedWork
    from bisector.model.records import CommitGraph, Irrelevant
    from bisector.schemas.request import Accepted
    from bisector.schemas.settings import Settings
    from bisector.simulation.estimate import Estimate
    from bisector.stats.aa_analysis import Known

# Before anything was measured here: seconds on two cores, as the first demo runs showed them. The first
# build of a tree is cold, those after it find most objects in ccache or in the output folder.
_BUILD_SECONDS, _BOOT_SECONDS, _RUN_SECONDS = 150.0, 10.0, 3.0


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(plan)


def plan(
    good: options.Good = "",
    bad: options.Bad = "",
    workload: options.WorkloadName = None,
    repo: options.Repo = None,
    param: options.Params = None,
    metric: options.Metric = None,
    threshold: options.Threshold = None,
    alpha: options.Alpha = None,
    recipe: options.RecipeName = None,
    testbeds: options.Testbeds = None,
    lab: options.Lab = None,
    skip: options.Skip = None,
    first_parent: options.FirstParent = False,
    apply: options.Apply = None,
    with_fix: options.WithFix = None,
    max_hours: options.MaxHours = None,
    max_builds: options.MaxBuilds = None,
    max_runs: options.MaxRuns = None,
    scan: options.Scan = False,
    build_ahead: options.BuildAhead = 0,
    monitor: options.Monitors = None,
    paths: options.Paths = None,
    as_json: options.Json = False,
) -> None:
    """Say what `start` would do: candidates, first steps, expected builds, boots, runs and time.

    Nothing is built, booted or written; the numbers come from a few simulated searches.

    Example:

      perfbisect plan --repo ~/linux --good v6.1 --bad v6.2 --workload pipe-test
    """
    from bisector.app import accept

    settings = options.settings(lab=lab, repo=repo)
    request = options.request(
        settings,
        good=good,
        bad=bad,
        workload=workload,
        param=param,
        metric=metric,
        threshold=threshold,
        alpha=alpha,
        recipe=recipe,
        testbeds=testbeds,
        skip=skip,
        first_parent=first_parent,
        apply=apply,
        with_fix=with_fix,
        max_hours=max_hours,
        max_builds=max_builds,
        max_runs=max_runs,
        scan=scan,
        build_ahead=build_ahead,
        monitors=monitor,
        paths=paths,
    )
    accepted, graph = accept.accept(settings, request)
    tell(settings, accepted, graph, as_json=as_json)


def tell(settings: Settings, accepted: Accepted, graph: CommitGraph, *, as_json: bool) -> None:
    """Print the plan of an accepted request."""
    from bisector.app import pruning, wiring
    from bisector.model.records import Measure
    from bisector.model.state import fold

    goal = accepted.the_goal()
    found = pruning.Pruning.of(settings, accepted)(graph)
    estimate, costs = _estimate(settings, accepted, graph, found)
    first = wiring.planner(settings, accepted.workload, accepted.testbeds, goal.metric.name).next(
        fold(graph, goal, (found,) if found else ())
    )
    step = f"{graph.shas[first.commit][:12]}: {first.reason}" if isinstance(first, Measure) else first.summary
    candidates = sum(graph.candidate)
    relevant = candidates - (len(found.commits) if found else 0)
    data: dict[str, Any] = {
        "good": accepted.good,
        "bad": accepted.bad,
        "candidates": candidates,
        "relevant": relevant if found else None,
        "kept": dict(found.kept) if found else None,
        "halvings": math.ceil(math.log2(max(relevant, 1))),
        "untestable": len(graph.untestable),
        "merge_bases": [graph.shas[i] for i in graph.merge_bases],
        "workload": accepted.workload,
        "metric": goal.metric.name,
        "threshold": goal.metric.threshold.value,
        "clock": accepted.clock,
        "testbeds": list(accepted.testbeds),
        "first": step,
        "expected": {
            name: getattr(estimate, name).model_dump()
            for name in ("builds", "boots", "runs", "seconds", "wall")
        },
        "seconds_each": costs,
        "assumptions": list(estimate.assumptions),
    }
    if as_json:
        output.print_json(data)
        return
    e = estimate
    source = costs["source"]
    print(
        output.pairs(
            {
                "range": f"{accepted.good[:12]}..{accepted.bad[:12]}: {candidates} candidates"
                + (f", {len(graph.untestable)} of them untestable" if graph.untestable else ""),
                "relevant": _relevant(found, relevant),
                "measures": f"{goal.metric.name} of {accepted.workload}, on {', '.join(accepted.testbeds)} "
                f"(clock: {accepted.clock})",
                "first step": step,
                "builds": f"{e.builds.mean:.0f} expected, {e.builds.p90:.0f} in one search of ten",
                "boots": f"{e.boots.mean:.0f} expected, {e.boots.p90:.0f} in one search of ten",
                "runs": f"{e.runs.mean:.0f} expected, {e.runs.p90:.0f} in one search of ten",
                "time": f"about {duration(e.wall.mean)}, {duration(e.wall.p90)} in one search of ten",
                "seconds each": f"build {costs['build']:.0f}, boot {costs['boot']:.1f}, "
                f"run {costs['run']:.1f} ({source})",
                "assumed": "\n".join(estimate.assumptions),
            }
        )
    )


def _relevant(found: Irrelevant | None, relevant: int) -> str:
    """Say how many commits may change the kernel, and why."""
    if found is None:
        return "not known yet: once both ends are built, commits that none of their files see are set aside"
    kept = ", ".join(f"{reason} {count:,}" for reason, count in found.kept.items())
    return (
        f"{relevant:,} ({kept}); the other {len(found.commits):,} change nothing that the "
        f"{found.builds} builds in this range have read"
    )


def expected(settings: Settings, accepted: Accepted, graph: CommitGraph) -> ExpectedWork:
    """Return what the live display counts down from."""
    from bisector.interfaces.cli.progress import ExpectedWork

    estimate, costs = _estimate(settings, accepted, graph)
    return ExpectedWork(
        estimate.builds.mean,
        estimate.boots.mean,
        estimate.runs.mean,
        costs["build"],
        costs["boot"],
        costs["run"],
    )


def _estimate(
    settings: Settings, accepted: Accepted, graph: CommitGraph, pruned: Irrelevant | None = None
) -> tuple[Estimate, dict[str, Any]]:
    from bisector.app import wiring
    from bisector.simulation.estimate import estimate

    goal = accepted.the_goal()
    known = wiring.calibrated(settings, accepted.workload, accepted.testbeds, goal.metric.name)
    costs = _costs(settings, known)
    aside = {*graph.untestable, *(pruned.commits if pruned else ())}
    found = estimate(
        max(sum(graph.candidate) - len(aside), 1),
        goal,
        build_seconds=costs["build"],
        boot_seconds=costs["boot"],
        run_seconds=costs["run"],
        noise=known.library if known is not None else None,
        testbeds=len(accepted.testbeds),
    )
    return found, costs


def _costs(settings: Settings, known: Known | None) -> dict[str, Any]:
    """Return the mean seconds of a build, boot and run of the latest bisection that has all three.

    Without one, of the calibration; 'measured' says whether a bisection measured them, 'source' who did.
    """
    from bisector.app import wiring

    if (settings.state_dir / "perfbisect.sqlite").exists():
        store = wiring.store(settings)
        for stored in store.list()[:5]:
            records = [record for _, record in store.records(stored.id)]
            builds = [r.seconds for r in records if isinstance(r, Built) and r.ok and not r.cached]
            boots = [r.seconds for r in records if isinstance(r, Booted) and r.ok]
            runs = [r.seconds for r in records if isinstance(r, Ran)]
            if builds and boots and runs:
                return {
                    "build": fmean(builds),
                    "boot": fmean(boots),
                    "run": fmean(runs),
                    "measured": True,
                    "source": "measured here before",
                }
    boot, run, source = _BOOT_SECONDS, _RUN_SECONDS, "guessed, nothing was measured here yet"
    if known is not None:
        boot, run = known.boot_seconds, known.run_seconds
        source = "boot and run as 'perfbisect calibrate' measured, build guessed"
    return {"build": _BUILD_SECONDS, "boot": boot, "run": run, "measured": False, "source": source}
