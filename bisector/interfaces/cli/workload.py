"""`perfbisect workload`: list, show, write and check workloads, and run one without a search."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bisector.errors import ExitCode
from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments import completion
from bisector.interfaces.cli.arguments.number_options import whole

if TYPE_CHECKING:
    from bisector.model.facts import MonitorResult
    from bisector.schemas.workload.workload import Workload

Folder = Annotated[
    Path | None, typer.Option("--workloads", help="Folder of workloads. [default: the shipped ones]")
]

_METRICS_PER_LINE = 4
"""Metrics of a run that fit into a line of 80 columns; a run with more is printed as a list."""


def list_(folder: Folder = None, as_json: options.Json = False) -> None:
    """List the workloads.

    Example:

      perfbisect workload list
    """
    from bisector.schemas.workload.workload import list_workloads

    found = list_workloads(folder)
    if as_json:
        output.print_json([_data(w) for w in found])
        return
    rows = [(w.name, _deciding(w), w.manifest.description.split("\n")[0]) for w in found]
    header = ("NAME", "DECIDED BY", "DESCRIPTION")
    print(output.table(header, rows, wrapped=["DECIDED BY", "DESCRIPTION"], dropped=["DECIDED BY"]))


def show(
    name: options.WorkloadArgument,
    folder: Folder = None,
    as_json: options.Json = False,
) -> None:
    """Check a workload's manifest and show what it means.

    Examples:

      perfbisect workload show pipe-test

      perfbisect workload show ./my-workload
    """
    from bisector.schemas.ranges import number_ranges
    from bisector.schemas.workload.workload import load_workload

    workload = load_workload(name, folder)
    if as_json:
        output.print_json(_data(workload))
        return
    manifest = workload.manifest
    print(output.strong(workload.name))
    print(
        output.pairs(
            {
                "description": manifest.description.strip(),
                "folder": str(workload.folder),
                "command": " ".join(manifest.run),
                "parameters": "\n".join(f"{n}: {', '.join(v)}" for n, v in manifest.parameters.items())
                or "none",
                "metrics": "\n".join(_metric(m) for m in manifest.metrics) + _matrix(workload),
                "runs": f"{manifest.runs} to begin with, after {manifest.warmup} for warming up",
                "timeout": f"{manifest.timeout:g} s",
                "clocks": " or ".join(manifest.clocks),
                "runs on": " or ".join(manifest.userspaces),
                "requires": ", ".join(_requires(manifest.requires)) or "nothing",
                "watched by": ", ".join(manifest.monitors.names()) or "nothing",
                "numbers": "\n".join(f"{key}: {limits}" for key, limits in number_ranges(type(manifest))),
                "pinned": ", ".join(f"{k}={v}" for k, v in manifest.environment.settings().items()),
            },
            indent="  ",
        )
    )


def run(
    name: options.WorkloadArgument,
    runs: Annotated[int | None, whole(1, 1_000_000, "Number of runs. [default: the manifest's]")] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Folder for the output. [default: no output is kept]")
    ] = None,
    rev: Annotated[
        str | None,
        typer.Option(
            metavar="REV",
            help="Build and boot this commit on a testbed, and run there.",
            autocompletion=completion.commits,
        ),
    ] = None,
    repo: options.Repo = None,
    trust_repo: options.TrustRepo = False,
    param: options.Params = None,
    testbed: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --rev: a testbed of the lab. [default: the first]",
            autocompletion=completion.testbeds,
        ),
    ] = None,
    recipe: options.RecipeName = None,
    apply: options.Apply = None,
    monitor: options.Monitors = None,
    folder: Folder = None,
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
    from bisector.app import kernels, single_run
    from bisector.report import monitor_results
    from bisector.schemas.workload.workload import load_workload

    workload = load_workload(name, folder).with_parameters(options.parameters(param))
    workload = workload.with_monitors(monitor or ())
    warmup, wanted = workload.manifest.warmup, runs or workload.manifest.runs
    done: list[dict[str, Any]] = []
    monitored: list[MonitorResult] = []
    with tempfile.TemporaryDirectory(prefix="perfbisect-") as scratch:
        place = keep or Path(scratch)
        wiring = options.make_wiring(repo=repo, trust_repo=trust_repo)
        if rev is None:
            results = single_run.try_workload(
                wiring, workload, wanted, place, output.print_note, monitored.append
            )
        else:
            order = kernels.order(
                wiring, rev, recipe or wiring.settings.recipe, patches=options.patches(apply)
            )
            results = single_run.measure_commit(
                wiring,
                workload,
                order,
                wanted,
                place,
                output.print_note,
                testbed_name=testbed,
                on_monitor=monitored.append,
            )
        for index, result in enumerate(results):
            done.append(
                {"warmup": index < warmup, "values": dict(result.values), "flags": list(result.flags)}
            )
            if not as_json:
                units = {metric.name: metric.unit for metric in workload.manifest.expanded_metrics()}
                marks = [*(["warm-up"] if index < warmup else []), *result.flags]
                print(_run_text(f"run {index}", result.values, units, marks))
    if keep is None:  # the raw files are gone with the temporary folder
        monitored = [dataclasses.replace(result, folder="") for result in monitored]
    if as_json:
        monitors = [dataclasses.asdict(result) for result in monitored]
        output.print_json({"workload": workload.name, "runs": done, "monitors": monitors})
        return
    for seen in monitored:
        print("\n".join(monitor_results.lines(seen)))


def _run_text(run: str, values: Mapping[str, float], units: Mapping[str, str], marks: Sequence[str]) -> str:
    """Return the values of a run: on one line, or for a matrix of parameters one line for each metric."""
    note = f" ({', '.join(marks)})" if marks else ""
    if len(values) <= _METRICS_PER_LINE:
        texts = ", ".join(f"{key} {value:.6g} {units[key]}" for key, value in values.items())
        return f"{run}: {texts}{note}"
    width = max(map(len, values))
    lines = [f"  {key:<{width}} {value:>12.6g} {units[key]}" for key, value in values.items()]
    return "\n".join([f"{run}:{note}", *lines])


def new(
    name: Annotated[str, typer.Argument(help="Small letters, digits, '.', '_' and '-'.")],
    parent: Annotated[Path, typer.Option("--in", help="Where its folder is made.")] = Path(),
    as_json: options.Json = False,
) -> None:
    """Write a new workload: a manifest of ten lines and a script that prints a number.

    Example:

      perfbisect workload new my-workload
    """
    from bisector.schemas.workload.template import write_template

    folder = write_template(name, parent)
    place = folder if folder.is_absolute() else f"./{folder}"
    if as_json:
        output.print_json({"name": name, "folder": str(folder.resolve())})
        return
    print(f"{place} is there; change {folder.name}.sh, then try it: perfbisect workload check {place}")


def check(
    name: options.WorkloadArgument,
    param: options.Params = None,
    lab: options.Lab = None,
    monitor: options.Monitors = None,
    folder: Folder = None,
    as_json: options.Json = False,
) -> None:
    """Check a workload: its manifest, its sample outputs, where it can run, and one run on this machine.

    Exit code 1 if something is wrong.

    Example:

      perfbisect workload check ./my-workload

      perfbisect workload check db-aio/fio --lab my-lab.yml
    """
    from bisector.app.workload_check import check_workload
    from bisector.schemas.workload.workload import load_workload

    workload = load_workload(name, folder).with_parameters(options.parameters(param))
    workload = workload.with_monitors(monitor or ())
    wrong, findings = False, []
    requires = workload.manifest.requires
    asks = requires.block_device is not None or requires.cpus > 1
    wiring = options.make_wiring(lab=lab)
    for finding in check_workload(wiring, workload, wiring.lab.testbeds if asks or lab is not None else ()):
        wrong = wrong or finding.state == "no"
        findings.append(dataclasses.asdict(finding))
        if not as_json:
            paint = {"ok": output.good, "note": output.doubtful, "no": output.bad}[finding.state]
            print(f"{paint(finding.state.ljust(6))}{finding.what}: {finding.words}")
    if as_json:
        output.print_json(findings)
    if wrong:
        raise typer.Exit(ExitCode.WRONG_REQUEST)


def _deciding(workload: Workload) -> str:
    """Return the metric that decides, or one for each clock where they differ."""
    by_clock = {clock: workload.metric(None, clock) for clock in workload.manifest.clocks}
    if len({metric.name for metric in by_clock.values()}) == 1:
        metric = next(iter(by_clock.values()))
        return f"{metric.name} ({metric.unit})"
    return ", ".join(f"{clock}: {metric.name} ({metric.unit})" for clock, metric in by_clock.items())


def _matrix(workload: Workload) -> str:
    """Return the points of a parameter matrix and the deciding metric; empty without a matrix."""
    points = workload.manifest.points()
    if len(points) == 1:
        return ""
    labels = ", ".join(point.label for point in points)
    return f"\neach at {len(points)} points: {labels}\ndecides: {workload.metric().name}"


def _metric(metric: Any) -> str:  # noqa: ANN401 - MetricManifest; pydantic is imported late
    decides = ", decides" if metric.decides else ""
    if len(metric.clocks) == 1:
        decides += f" under the clock '{metric.clocks[0]}'" if decides else f", only for '{metric.clocks[0]}'"
    ratio = f" ({metric.ratio})" if metric.ratio else ""
    text = f"{metric.name}{ratio} in {metric.unit}, {metric.better} is better"
    return f"{text}, threshold {metric.threshold}{decides}"


def _requires(requires: Any) -> list[str]:  # noqa: ANN401 - Requirements; pydantic is imported late
    found = [f"package {name}" for name in requires.packages]
    found += [f"kernels with {name}" for name in requires.fragments]
    found += [f"a block device of {requires.block_device}"] if requires.block_device else []
    found += [f"cgroup {requires.cgroup}"] if requires.cgroup else []
    return found + ([f"{requires.cpus} CPUs"] if requires.cpus > 1 else [])


def _data(workload: Workload) -> dict[str, Any]:
    return {"folder": str(workload.folder), **workload.manifest.model_dump(mode="json")}
