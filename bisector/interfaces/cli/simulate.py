"""`perfbisect simulate`: can this effect be found under this noise, and what will it cost?"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from bisector.errors import RequestError, nearest
from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments import number_options
from bisector.interfaces.cli.arguments.number_options import real, share, whole
from bisector.interfaces.cli.terminal import write_document
from bisector.model.format import count
from bisector.model.goal import Budget, Direction, TestbedClock
from bisector.schemas.noise_kinds import DRIFT_KINDS, MAX_DRIFT, NOISE_KINDS, DriftKind, NoiseKind

if TYPE_CHECKING:
    from bisector.simulation.summary import Distribution, Report, Share

_SECONDS_BEFORE_PROGRESS = 2.0
"""A shorter simulation shows no progress."""

_SECONDS_BETWEEN_LINES = 10.0
"""Time between two progress lines where stderr is not a terminal."""


def _listed(kinds: Mapping[str, str]) -> str:
    """Return a list of kinds and what they mean, wrapped for a help text."""
    items = (fill(f"* {name}: {meaning}.", 78, subsequent_indent="  ") for name, meaning in kinds.items())
    return "\n".join(items)


HELP = f"""Run the real planner on synthetic histories: what will a bisection cost, and will it be right?

Effects and noises are in percent of the metric's level at the good end; noises are standard deviations.
A positive effect is worse. Costs are in one unit of your choice. The same seed gives the same result.

Kinds of --noise (default gauss):

{_listed(NOISE_KINDS)}

Kinds of --drift (default none; KIND or KIND:SIZE, SIZE defaults to the threshold):

{_listed(DRIFT_KINDS)}

Examples:

  perfbisect simulate --commits 1024 --effect 2 --run-noise 2 --trials 100

  perfbisect simulate --commits 200 --culprits '50:2,150:1.5' --boot-noise 0.5 --json

  perfbisect simulate --effect 0 --threshold 1   (no culprit: how often is one accused?)
"""


def command(
    commits: Annotated[int, whole(1, 1_000_000, "Candidates in the history.")] = 128,
    history: Annotated[
        Literal["linear", "branched"],
        typer.Option(help="Shape; branched: with merges, and with branches that lack the good end."),
    ] = "linear",
    repo: Annotated[Path | None, typer.Option(help="Use the graph of this repository.")] = None,
    trust_repo: options.TrustRepo = False,
    good: Annotated[str, typer.Option(metavar="REV", help="With --repo: the good end.")] = "",
    bad: Annotated[str, typer.Option(metavar="REV", help="With --repo: the bad end.")] = "",
    culprits: Annotated[
        str,
        typer.Option(help="POS:EFFECT,... with POS from 1 (first after good), 'first', 'last', 'random'."),
    ] = "",
    effect: Annotated[
        float | None, real(-99, 1e6, "One culprit at a random place. [default: 2]", above=True)
    ] = None,
    threshold: Annotated[
        float | None,
        real(1e-6, 1e6, "Smallest change to blame. [default: half the smallest effect]"),
    ] = None,
    run_noise: Annotated[float, real(0, 100, "Spread of the runs of one boot.")] = 1.0,
    boot_noise: Annotated[float, real(0, 100, "Spread between boots of one build.")] = 0.0,
    build_noise: Annotated[float, real(0, 100, "Spread between binaries: code and data layout.")] = 0.0,
    noise: Annotated[NoiseKind, typer.Option(metavar="KIND", help="Kind of run noise, see above.")] = "gauss",
    drift: Annotated[str, typer.Option(help="KIND or KIND:SIZE, see above.")] = "none",
    background: Annotated[
        float,
        real(0, 100, "Every commit shifts the level a little: spread of their sum over the range."),
    ] = 0.0,
    fork_offset: Annotated[
        float | None, real(0, 100, "Spread of the offsets of commits without good. [default: threshold]")
    ] = None,
    untestable: Annotated[float, share("Probability that a commit does not build or boot.")] = 0.0,
    broken_stretch: Annotated[
        int, whole(0, 1_000_000, "Untestable commits in a row around the culprit.")
    ] = 0,
    same_binary: Annotated[float, share("Probability that a commit changes no binary.")] = 0.0,
    cost: Annotated[str, typer.Option(help="Cost of a build, a boot and a run.")] = "build=20,boot=5,run=1",
    alpha: Annotated[
        float, number_options.option(number_options.ALPHA, "Accepted share of wrong answers.")
    ] = 0.05,
    testbeds: Annotated[int, whole(1, 1000, "Machines that measure at once (one builder serves them).")] = 1,
    testbed_spread: Annotated[float, real(0, 100, "Spread of the levels of the testbeds.")] = 1.0,
    better: Annotated[Direction, typer.Option(help="Which way the metric is better.")] = "lower",
    clock: Annotated[
        TestbedClock,
        typer.Option(help="Clock; instructions: repetition k is compared with repetition k."),
    ] = "wall",
    scan: Annotated[bool, typer.Option("--scan", help="Search even where the ends do not differ.")] = False,
    max_cost: Annotated[
        float | None, real(0, 1e9, "Budget: cost of all builds, boots and runs.", above=True)
    ] = None,
    max_builds: Annotated[int | None, whole(1, 1_000_000, "Budget: builds.")] = None,
    max_runs: Annotated[int | None, whole(1, 1_000_000, "Budget: runs.")] = None,
    samples: Annotated[
        Path | None,
        typer.Option(
            help='Resample real noise: JSON {"boots": [[run, run, ...], ...]}; replaces run and boot noise.'
        ),
    ] = None,
    trials: Annotated[int, whole(1, 1_000_000, "Histories to draw.")] = 100,
    seed: Annotated[int, whole(0, 4_294_967_295, "The same seed gives the same result.")] = 1,
    jobs: Annotated[int | None, whole(1, 1024, "Processes. [default: all cores]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; its schema: --schema.")] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of --json and stop.")
    ] = False,
) -> None:
    """Build the scenario, run it, print it. Raises RequestError for what cannot be simulated."""
    # importing numpy and scipy takes half a second
    from bisector.simulation import scenario as sim
    from bisector.simulation.batch import simulate
    from bisector.simulation.noise_model import LabModel
    from bisector.simulation.summary import Report

    if schema:
        print(json.dumps(Report.model_json_schema(mode="serialization"), indent=2))
        return
    if repo and not (good and bad):
        raise RequestError("--repo needs --good and --bad, the ends of the range", cure="give both of them")
    who = sim.parse_culprits(culprits) if culprits else (sim.Culprit(2.0 if effect is None else effect),)
    graph = None
    if repo:
        from bisector.app.real_history import real_graph

        graph = real_graph(repo, good, bad, trusted=trust_repo)
    # the threshold of the scenario is the default size of drift and of fork offsets
    limit = sim.Scenario(commits=commits, graph=graph, culprits=who, threshold=threshold).limit
    drift_kind, drift_size = _parse_drift(drift)
    lab = LabModel(
        run_noise=run_noise,
        boot_noise=boot_noise,
        build_noise=build_noise,
        noise=noise,
        drift=drift_kind,
        drift_size=limit if drift_size is None else drift_size,
        background=background,
        fork_offset=limit if fork_offset is None else fork_offset,
        untestable=untestable,
        broken=broken_stretch,
        inert=same_binary,
        testbed_spread=testbed_spread,
        better=better,
        clock=clock,
        samples=sim.read_samples(samples) if samples else (),
        copied=False,
        testbeds=(),
        **sim.parse_costs(cost),
    )
    scenario = sim.Scenario(
        commits=commits,
        history=history,
        graph=graph,
        culprits=who,
        threshold=threshold,
        alpha=alpha,
        lab=lab,
        testbeds=testbeds,
        scan=scan,
        budget=Budget(max_cost, max_builds, max_runs),
    )
    summary = simulate(scenario, trials, seed, jobs=jobs or os.cpu_count() or 1, progress=_progress())
    report = Report(seed=seed, scenario=scenario.describe(), **summary.model_dump())
    if as_json:
        write_document(report.model_dump_json(indent=2) + "\n")
    else:
        print(report_text(report))


def report_text(report: Report) -> str:
    """Return the report for people: what came out, what it cost, and what that means."""
    n = report.trials
    rows = [
        ("right answers", _share(report.success)),
        ("  with sets that cannot be split", _share(report.success_with_sets)),
        ("wrong among the claims", _share(report.wrong_claims)),
        ("inconclusive", f"{report.inconclusive} of {n}{_within(report)}"),
        ("'not reproduced'", f"{report.not_reproduced} of {n}"),
        ("mean stated confidence", f"{report.mean_confidence:.3f}" if report.wrong_claims.of else "none"),
    ]
    rows += [(name, f"{many} of {n}") for name, many in _rarer(report) if many]
    if report.sets.count:
        rows.append(("sets", f"{report.sets.count}, of {report.sets.mean_size:.1f} commits on average"))
    lines = [f"{count(n, 'simulated bisection')}, seed {report.seed}", ""]
    lines += [f"  {name:<34}{value}" for name, value in rows]
    lines += ["", f"  {'':<12}{'mean':>10}{'half':>10}{'90%':>10}{'99%':>10}   need at most"]
    spreads: tuple[tuple[str, Distribution], ...] = (
        ("builds", report.builds),
        ("boots", report.boots),
        ("runs", report.runs),
        ("cost", report.cost),
        ("wall time", report.wall_time),
    )
    for name, s in spreads:
        numbers = "".join(
            f"{value:>10.1f}" if value < 1e7 else f"{value:>10.3g}" for value in (s.mean, s.p50, s.p90, s.p99)
        )
        lines.append(f"  {name:<12}{numbers}")
    spent = [f"{name} {part.cost:.0f}" for name, part in report.by_purpose.items() if part.cost]
    if spent:
        lines += ["", f"  mean cost by purpose: {', '.join(spent)}"]
    return "\n".join(lines)


def _rarer(report: Report) -> tuple[tuple[str, int], ...]:
    """Return the endings that are shown only where they occur; with those above they are complete."""
    return (
        ("not all culprits found", report.incomplete),
        ("'spread over many commits'", report.spread),
        ("'fixed on good's side'", report.fixed),
    )


def _within(report: Report) -> str:
    """Return a note where a budget may have stopped the bisections."""
    budget = report.scenario["budget"]
    limited = isinstance(budget, dict) and any(limit is not None for limit in budget.values())
    return "  (within the budget)" if limited and report.inconclusive else ""


def _share(share: Share) -> str:
    if not share.of:
        return "none were made"
    percent = [f"{100 * x:.1f}%" for x in (share.share, share.low, share.high)]
    return f"{percent[0]}  (95% interval {percent[1]} to {percent[2]})"


def _parse_drift(text: str) -> tuple[DriftKind, float | None]:
    """Read 'KIND' or 'KIND:SIZE'; a size in percent, None where it is left out. Raises RequestError."""
    name, colon, size = text.partition(":")
    for kind in get_args(DriftKind):
        if kind == name:
            break
    else:
        raise RequestError(
            f"--drift: there is no drift '{name}'{nearest(name, DRIFT_KINDS)}",
            cure=f"write one of {', '.join(DRIFT_KINDS)}",
        )
    try:
        found = float(size) if colon else None
    except ValueError as error:
        raise RequestError(
            f"--drift: '{size}' is not a number", cure="write for example linear:0.5"
        ) from error
    if found is not None and not -MAX_DRIFT <= found <= MAX_DRIFT:
        raise RequestError(
            f"--drift: '{size}' is not a valid drift", cure=f"from -{MAX_DRIFT} to {MAX_DRIFT} percent"
        )
    return kind, found


def _progress() -> Callable[[int, int], None]:
    """Return a callback that shows the expected time left on stderr, where a simulation takes seconds."""
    started, shown_at = time.monotonic(), [0.0]
    terminal = output.redrawn(sys.stderr)

    def show(done: int, of: int) -> None:
        spent = time.monotonic() - started
        if done == of:
            if shown_at[0] and terminal:
                output.show_status("")
        elif spent > _SECONDS_BEFORE_PROGRESS and (terminal or spent - shown_at[0] > _SECONDS_BETWEEN_LINES):
            shown_at[0] = spent
            line = f"simulated {done} of {of} bisections, about {spent / done * (of - done):.0f} s to go"
            (output.show_status if terminal else output.print_note)(line)

    return show
