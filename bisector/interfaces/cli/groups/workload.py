"""`perfbisect workload`: list, show, write and check workloads, and run one without a search."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bisector.errors import ExitCode
from bisector.interfaces.cli import options, output

if TYPE_CHECKING:
    from bisector.schemas.workload.manifest import WorkloadManifest
    from bisector.schemas.workload.workload import Workload


def list_(folder: options.WorkloadFolder = None, as_json: options.Json = False) -> None:
    """List the workloads.

    Example:

      perfbisect workload list
    """
    from bisector.schemas.workload.workload import list_workloads

    found, wrong = list_workloads(folder)
    if as_json:
        output.print_json([_data(w) for w in found])
    else:
        rows = [(w.name, _deciding(w), w.manifest.description.split("\n")[0]) for w in found]
        header = ("NAME", "DECIDED BY", "DESCRIPTION")
        print(output.table(header, rows, wrapped=["DECIDED BY", "DESCRIPTION"], dropped=["DECIDED BY"]))
    for error in wrong:
        output.print_error(error.message, error.details, error.cure)
    if wrong:
        raise typer.Exit(ExitCode.WRONG_REQUEST)


def show(
    name: options.WorkloadArgument,
    folder: options.WorkloadFolder = None,
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
                "work": _work(manifest),
                "runs": f"{manifest.runs} to begin with, after {manifest.warmup} for warming up",
                "timeout": f"{manifest.timeout:g} s",
                "clocks": " or ".join(manifest.clocks),
                "runs on": " or ".join(manifest.userspaces),
                "requires": ", ".join(_requires(manifest.requires)) or "nothing",
                "counted beside": ", ".join(manifest.counted()) or "nothing",
                "watched by": ", ".join(manifest.monitors.names()) or "nothing",
                "numbers": "\n".join(f"{key}: {limits}" for key, limits in number_ranges(type(manifest))),
                "pinned": ", ".join(f"{k}={v}" for k, v in manifest.environment.settings().items()),
            },
            indent="  ",
        )
    )


def _work(manifest: WorkloadManifest) -> str:
    """Return what a run does, and how often."""
    if manifest.work is None:
        return "not told"
    told = manifest.work.in_a_run(manifest.parameters)
    if told is None:
        return f"{manifest.work.unit}: {manifest.work.count} in each combination of the parameters"
    return f"{told[0]}: {told[1]:,} in a run"


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
    folder: options.WorkloadFolder = None,
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
    testbeds = wiring.lab.testbeds if asks or lab is not None else ()
    for finding in check_workload(wiring, workload, testbeds, output.print_note):
        wrong = wrong or finding.state == "no"
        findings.append(dataclasses.asdict(finding))
        if not as_json:
            paint = {"ok": output.good, "note": output.doubtful, "no": output.bad}[finding.state]
            text = output.pairs({"": f"{finding.what}: {finding.words}"}, " " * 4)[6:]
            print(paint(finding.state.ljust(6)) + text)
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
