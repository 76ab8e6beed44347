"""`perfbisect workload run`: one workload by hand, here or in one boot of a commit."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments import completion
from bisector.interfaces.cli.arguments.number_options import whole

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.model.facts import MonitorResult
    from bisector.model.goal import Metric
    from bisector.ports import BuildOrder
    from bisector.schemas.workload.workload import Workload

_METRICS_PER_LINE = 4
"""Metrics of a run that fit into a line of 80 columns; a run with more is printed as a list."""

_FUNCTIONS = 30
"""Functions that are printed of some 800 that a run executes; those of `perfbisect profile`."""


def run(
    name: options.WorkloadArgument,
    runs: Annotated[int | None, whole(1, 1_000_000, "Number of runs. [default: the manifest's]")] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Folder for the output. [default: no output is kept]")
    ] = None,
    rev: Annotated[
        str | None,
        completion.commit_option("Build and boot this commit on a testbed, and run there."),
    ] = None,
    repo: options.Repo = None,
    trust_repo: options.TrustRepo = False,
    param: options.Params = None,
    testbed: Annotated[
        str | None, completion.testbed_option("With --rev: a testbed of the lab. [default: the first]")
    ] = None,
    recipe: options.RecipeName = None,
    apply: options.Apply = None,
    monitor: options.Monitors = None,
    folder: options.WorkloadFolder = None,
    as_json: options.Json = False,
) -> None:
    """Run a workload on this machine with its kernel, or with --rev in one boot of a commit.

    Without --rev it tests a manifest. The manifest's settings are restored afterwards; without root they are
    not made. With --rev it repeats a measurement of a bisection by hand. Monitors get runs of their own,
    after the others.

    Examples:

      perfbisect workload run pipe-test

      perfbisect workload run ./my-workload --runs 10 --keep out

      perfbisect workload run pipe-test --rev v6.1 --repo ~/linux

      perfbisect workload run pipe-test --monitor perf-stat --monitor proc=/proc/vmstat

      perfbisect workload run poundtime --param threads=2 --param threads=4x --param calls=100000
    """
    from bisector.app import single_run
    from bisector.report import monitor_results
    from bisector.schemas.workload.workload import load_workload
    from bisector.stats.run_summary import sum_up

    workload = load_workload(name, folder).with_parameters(options.parameters(param))
    workload = workload.with_monitors(monitor or ())
    wanted = runs or workload.manifest.runs
    monitored: list[MonitorResult] = []
    with tempfile.TemporaryDirectory(prefix="perfbisect-") as scratch:
        place = keep or Path(scratch)
        wiring = options.make_wiring(repo=repo, trust_repo=trust_repo)
        results: Iterable[Any]
        if rev is None:
            results = single_run.try_workload(
                wiring, workload, wanted, place, output.print_note, monitored.append
            )
        else:
            order = _order(wiring, rev, recipe, apply)
            note, on_monitor = output.print_note, monitored.append
            results = single_run.measure_commit(
                wiring, workload, order, wanted, place, note, testbed_name=testbed, on_monitor=on_monitor
            )
        done = _carry_out(workload, results, as_json=as_json)
    if keep is None:  # the raw files are gone with the temporary folder
        monitored = [dataclasses.replace(result, folder="") for result in monitored]
    counted = [run["values"] for run in done if not run["warmup"] and not run["flags"]]
    series = single_run.series(workload, counted)
    if as_json:
        monitors = [dataclasses.asdict(result) for result in monitored]
        rows = [dataclasses.asdict(sum_up(metric, values)) for metric, values in series]
        output.print_json({"workload": workload.name, "runs": done, "summary": rows, "monitors": monitors})
        return
    if len(counted) > 1:
        _print_levels(workload, series)
    for seen in monitored:
        print("\n".join(monitor_results.lines(seen, _FUNCTIONS if seen.monitor == "counters" else None)))


def _order(wiring: Wiring, rev: str, recipe: str | None, apply: Sequence[Path] | None) -> BuildOrder:
    from bisector.app import kernels

    return kernels.order(wiring, rev, recipe or wiring.settings.recipe, patches=options.patches(apply))


def _carry_out(workload: Workload, results: Iterable[Any], *, as_json: bool) -> list[dict[str, Any]]:
    """Return what each run gave; print it as it comes unless all of it is printed as JSON."""
    warmup = workload.manifest.warmup
    units = {metric.name: metric.unit for metric in workload.manifest.all_metrics()}
    done = []
    for index, result in enumerate(results):
        done.append({"warmup": index < warmup, "values": dict(result.values), "flags": list(result.flags)})
        if not as_json:
            marks = [*(["warm-up"] if index < warmup else []), *result.flags]
            print(_run_text(f"run {index}", result.values, units, marks))
    return done


def _print_levels(workload: Workload, series: Sequence[tuple[Metric, list[float]]]) -> None:
    """Print what the runs sum up to."""
    from bisector.report import pictures, run_levels

    deciding = {workload.metric(None, clock).name for clock in workload.manifest.clocks}
    lines = run_levels.lines(series, deciding, output.terminal_width())
    print("\n".join(["", *pictures.in_characters_of(sys.stdout.encoding, lines)]))


def _run_text(run: str, values: Mapping[str, float], units: Mapping[str, str], marks: Sequence[str]) -> str:
    """Return the values of a run: on one line, or for a matrix of parameters one line for each metric."""
    note = f" ({', '.join(marks)})" if marks else ""
    if len(values) <= _METRICS_PER_LINE:
        texts = ", ".join(f"{key} {value:.6g} {units[key]}" for key, value in values.items())
        return f"{run}: {texts}{note}"
    width = max(map(len, values))
    lines = [f"  {key:<{width}} {value:>12.6g} {units[key]}" for key, value in values.items()]
    return "\n".join([f"{run}:{note}", *lines])
