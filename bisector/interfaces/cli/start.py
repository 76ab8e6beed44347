"""`perfbisect start` and `resume`: running a bisection, watching it, and saying how it ended."""

from __future__ import annotations

import json
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bisector.errors import PerfbisectError, RequestError
from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.application import global_options
from bisector.model.records import EXIT_CODES

if TYPE_CHECKING:
    from bisector.interfaces.cli.progress import ExpectedWork
    from bisector.interfaces.cli.services import Stored
    from bisector.schemas.request import Accepted
    from bisector.schemas.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(start)
    app.command()(resume)


def start(
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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, as 'plan' does; change nothing.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Find the commit between GOOD and BAD that made WORKLOAD slower.

    The same request goes on where an unfinished one stopped. Exit codes: 0 culprit proven, 1 wrong request,
    2 not reproduced, 3 infrastructure, 4 a set that cannot be told apart, 5 inconclusive, spread over many
    commits or budget spent, 130 interrupted.

    Examples:

      perfbisect start --repo ~/linux --good v6.1 --bad v6.2 --workload pipe-test

      perfbisect start --good v6.1 --bad v6.2 --workload ./mine --skip v6.2-rc1 --max-hours 8 -- kernel/sched

      perfbisect start --good v6.1 --bad v6.2 --workload pipe-test --threshold 2% --dry-run
    """
    from bisector.app import accept, bisections, wiring

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
    if dry_run:
        from bisector.interfaces.cli import plan

        plan.tell(settings, accepted, graph, as_json=as_json)
        return
    for note in accept.unseen(accepted):
        output.print_note(f"note: {note}")
    for note in wiring.source(settings, request.repo).notes():
        output.print_note(f"note: {note}")
    store = wiring.store(settings)
    stored, new = bisections.begin(store, accepted, graph, time.time())
    count = sum(graph.candidate)
    output.print_note(
        f"bisection {stored.id}: {'going on with ' if not new else ''}{count} candidates, "
        f"decided by {accepted.the_goal().metric.name}, clock '{accepted.clock}'"
    )
    raise typer.Exit(_run(settings, stored, accepted, as_json=as_json))


def resume(identity: options.Id = None, as_json: options.Json = False) -> None:
    """Go on with a bisection that was interrupted, killed or stopped by a failing machine.

    Without an id: the latest that has not ended. Finished builds and runs are not repeated.

    Examples:

      perfbisect resume

      perfbisect resume pipe-test-3f2a
    """
    from bisector.interfaces.cli import load_report, services
    from bisector.schemas.request import Accepted

    settings = options.settings()
    if identity is None:
        unfinished = [s for s in services.store(settings).list() if s.status not in ("done", "cancelled")]
        if not unfinished:
            raise RequestError("every bisection has ended", cure="'perfbisect list' shows them")
        stored = unfinished[0]
    else:
        stored = load_report.find_bisection(settings, identity)
    if stored.status == "cancelled":
        raise RequestError(
            f"the bisection '{stored.id}' was cancelled",
            cure="'perfbisect start' with its request begins anew",
        )
    accepted = Accepted.model_validate_json(stored.request)
    output.print_note(f"bisection {stored.id}: going on")
    raise typer.Exit(_run(settings, stored, accepted, as_json=as_json))


def _run(settings: Settings, stored: Stored, accepted: Accepted, *, as_json: bool) -> int:
    """Run to the end, or watch another process do it; write and print the report; return the exit code."""
    from bisector.app import bisections, wiring
    from bisector.interfaces.cli import services
    from bisector.interfaces.cli.progress import ProgressDisplay

    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    repository = services.source(settings, accepted.request.repo)

    def label(index: int) -> str:
        sha = stored.graph.shas[index]
        try:
            return f'{sha[:12]} ("{repository.info(sha).subject}")'
        except PerfbisectError:
            return sha[:12]

    services.keep_host(settings, stored.id)
    try:
        with ProgressDisplay(label, _expected(settings, stored, accepted)) as live:
            try:
                conclusion = bisections.run(
                    stored, wiring.services(settings, accepted, stop.is_set), live, stop
                )
            except bisections.Busy as busy:
                if busy.bisection != stored.id:
                    raise
                output.print_note("another process runs it; watching")
                store = wiring.store(settings)
                conclusion = bisections.follow(
                    store, stored.id, lambda: bisections.runner(settings.state_dir) == stored.id, live
                )
    finally:
        _write(settings, stored.id)
    _print(settings, stored.id, as_json=as_json)
    return EXIT_CODES[conclusion.ending]


def _expected(settings: Settings, stored: Stored, accepted: Accepted) -> ExpectedWork | None:
    from bisector.interfaces.cli import plan

    try:
        return plan.expected(settings, accepted, stored.graph)
    except RequestError:  # nothing to estimate, such as a range that is all untestable
        return None


def _write(settings: Settings, identity: str) -> tuple[Path, Path] | None:
    """Write both forms of the report beside the bisection's data, however far it got; return their paths."""
    from bisector.interfaces.cli import load_report
    from bisector.report import json_report, text

    try:
        material = load_report.load_material(settings, identity, so_far=True)
        folder = settings.state_dir / "bisections" / identity
        paths = folder / "report.txt", folder / "report.json"
        paths[0].write_text(text.render(material), encoding="utf-8")
        paths[1].write_text(json.dumps(json_report.render(material), indent=2) + "\n", encoding="utf-8")
    except (OSError, PerfbisectError) as error:
        # a full disk must not change how the search ended
        output.print_note(
            f"the report could not be written: {error}; 'perfbisect report {identity}' prints it"
        )
        if global_options().debug:
            raise
        return None
    return paths


def _print(settings: Settings, identity: str, *, as_json: bool) -> None:
    from bisector.interfaces.cli import load_report
    from bisector.report import json_report, text

    material = load_report.load_material(settings, identity)
    if as_json:
        output.print_json(json_report.render(material))
        return
    print("\n" + text.short(material), end="")
    folder = settings.state_dir / "bisections" / identity
    print(f"\nreport: {folder / 'report.txt'} (and report.json); 'perfbisect report' prints it")
