"""Whether a workload is fit to be searched with: its samples, its programs, one run here."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bisector.app.single_run import series, try_workload
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError, PerfbisectError, RequestError
from bisector.model.format import count
from bisector.model.goal import TestbedClock
from bisector.report import run_levels
from bisector.schemas.kernel.recipe import DEFAULT_RECIPE, load_recipe, with_fragments
from bisector.schemas.lab import TestbedSpec
from bisector.schemas.workload.compatibility import missing_resources
from bisector.schemas.workload.monitors import Monitors, shortfalls
from bisector.schemas.workload.workload import Workload
from bisector.stats.run_summary import sum_up

if TYPE_CHECKING:
    from bisector.adapters.parsers.workload_output import OutputError
    from bisector.ports import Progress, RunResult

_TRIED_RUNS, _TRIED_SECONDS = 5, 20.0
"""Runs that show their spread within a factor of two; none is begun once they have taken so long."""


@dataclass(frozen=True, slots=True)
class WorkloadFinding:
    """One thing looked at. state: 'no' is a mistake to mend, 'note' is worth knowing."""

    what: str
    state: Literal["ok", "note", "no"]
    words: str


def check_workload(
    wiring: Wiring,
    workload: Workload,
    testbeds: Sequence[TestbedSpec] = (),
    progress: Progress = lambda _: None,
) -> Iterator[WorkloadFinding]:
    """Look at a loaded workload, cheapest first; ends with one run on this machine if that is possible.

    testbeds: those of the lab, to be asked for what the workload requires; progress: told what the run does,
    or waits for: another perfbisect that measures on this machine.
    """
    manifest = workload.manifest
    yield WorkloadFinding(
        "manifest",
        "ok",
        f"{count(len(manifest.expanded_metrics()), 'metric')} at {count(len(manifest.points()), 'point')}",
    )
    yield from _samples(workload)
    missing = [name for name in manifest.programs() if shutil.which(name) is None]
    yield from _where(workload)
    yield from _kernel(workload)
    yield from _testbeds(workload, testbeds)
    if missing:
        words = f"not run here: no {', '.join(missing)}"
        yield WorkloadFinding(
            "run", "note", f"{words} (packages: {', '.join(manifest.requires.packages) or 'unknown'})"
        )
        return
    if manifest.requires.block_device:
        yield WorkloadFinding(
            "run", "note", "not run here: no device of this machine is named to be overwritten"
        )
        return
    yield from _run(wiring, workload, progress)


def _samples(workload: Workload) -> Iterator[WorkloadFinding]:
    from bisector.adapters.parsers.workload_output import OutputError

    if workload.manifest.parse == "elapsed":  # nothing that it prints is read
        return
    empty = True
    for path, found in read_samples(workload):
        empty = False
        if isinstance(found, OutputError):
            yield WorkloadFinding(f"samples/{path.name}", "no", str(found))
        else:
            yield WorkloadFinding(f"samples/{path.name}", "ok", count(len(found), "metric"))
    if empty:
        words = "there is no samples/*.txt: keep what a run printed, as a test of 'parse'"
        if workload.manifest.parse == "results":
            words = f"there is nothing in samples/: keep what a run left as '{workload.manifest.results}'"
        yield WorkloadFinding("samples", "note", words)


def read_samples(workload: Workload) -> Iterator[tuple[Path, dict[str, float] | OutputError]]:
    """Return each sample output of the workload's folder with its metrics, or with what is wrong with it."""
    from bisector.adapters.agent.payload import metric_specs
    from bisector.adapters.parsers.run_files import values
    from bisector.adapters.parsers.workload_output import OutputError, parse

    manifest = workload.manifest
    specs = metric_specs(manifest)
    from_files = manifest.parse == "results"
    for path in sorted((workload.folder / "samples").glob("*" if from_files else "*.txt")):
        try:
            if from_files:
                yield path, values(path, specs)
            else:
                yield path, parse(manifest.parse, path.read_text(errors="replace"), specs)
        except OutputError as error:
            yield path, error
        except InfrastructureError as error:  # an expression that takes too long
            yield path, OutputError(f"{error.message}; {error.cure}")


def _where(workload: Workload) -> Iterator[WorkloadFinding]:
    from bisector.adapters.guest.debian_packages import check_packages

    manifest = workload.manifest
    packages = ", ".join(manifest.packages())
    if packages:
        try:
            check_packages(manifest.packages())
        except RequestError as error:
            yield WorkloadFinding("guests", "no", error.message)
        else:
            yield WorkloadFinding(
                "guests", "note", f"get an image of their own with {packages}, built once (needs the network)"
            )
    fragments = manifest.requires.fragments
    for name, words in shortfalls(manifest.monitors, manifest.userspaces, manifest.clocks, fragments):
        yield WorkloadFinding(f"monitor {name}", "note", words)
    if "initramfs" not in manifest.userspaces:
        yield WorkloadFinding(
            "old kernels", "note", "not for kernels that need an initramfs ('userspaces' says so)"
        )
    for clock in ("wall", "instructions"):
        if clock not in manifest.clocks:
            yield WorkloadFinding("clock", "note", f"cannot be decided by the clock '{clock}'")


def _kernel(workload: Workload) -> Iterator[WorkloadFinding]:
    fragments = workload.manifest.requires.fragments
    if not fragments:
        return
    try:
        load_recipe(with_fragments(DEFAULT_RECIPE, fragments))
    except RequestError as error:
        yield WorkloadFinding("kernels", "no", f"{error.message}\n{error.details}")
    else:
        yield WorkloadFinding("kernels", "note", f"are built with {', '.join(fragments)} beside their recipe")


def _testbeds(workload: Workload, testbeds: Sequence[TestbedSpec]) -> Iterator[WorkloadFinding]:
    lacking = {testbed.name: missing_resources(workload, testbed) for testbed in testbeds}
    for name, found in lacking.items():
        state: Literal["note", "no"] = "no" if all(lacking.values()) else "note"
        for missing in found:
            yield WorkloadFinding(f"testbed {name}", state, f"lacks {missing.description}; {missing.cure}")
        if not found:
            yield WorkloadFinding(f"testbed {name}", "ok", "has what is required")


def _run(wiring: Wiring, workload: Workload, progress: Progress) -> Iterator[WorkloadFinding]:
    with tempfile.TemporaryDirectory(prefix="perfbisect-") as scratch:
        alone = {"warmup": 0, "settle": 0.0, "pause": 0.0, "monitors": Monitors()}
        one = workload.manifest.model_copy(update=alone)
        results: list[RunResult] = []
        try:
            tried = replace(workload, manifest=one)
            running = try_workload(wiring, tried, _TRIED_RUNS, Path(scratch), progress)
            with contextlib.closing(running):
                for result in running:
                    results.append(result)
                    if sum(done.seconds for done in results) > _TRIED_SECONDS:
                        break
        except PerfbisectError as error:
            words = "\n".join(part for part in (error.message, error.details) if part)
            needed = workload.manifest.requires.fragments
            if needed:
                words = f"not under this machine's kernel, which may lack {', '.join(needed)}: {words}"
            yield WorkloadFinding("run", "note" if needed else "no", words.rstrip())
            return
    values = ", ".join(f"{name} {value:.6g}" for name, value in results[0].values.items())
    yield WorkloadFinding("run", "ok", f"{results[0].seconds:.2f} s here; {values}")
    if max(result.seconds for result in results) * 2 > workload.manifest.timeout:
        yield WorkloadFinding("timeout", "note", f"{workload.manifest.timeout:g} s leave little room")
    yield from _threshold(workload, results)


def _threshold(workload: Workload, results: Sequence[RunResult]) -> Iterator[WorkloadFinding]:
    """Say how many runs the threshold takes on this machine, of each metric that can decide here."""
    clock: TestbedClock = "wall" if "wall" in workload.manifest.clocks else "instructions"
    deciding = workload.metric(None, clock).name
    for metric, values in series(workload, [result.values for result in results]):
        one = sum_up(metric, values)
        note = run_levels.what_is_shown(one) if metric.name == deciding else ""
        if note:
            state: Literal["ok", "note"] = "note" if run_levels.of_nothing(one) else "ok"
            yield WorkloadFinding("threshold", state, f"{note} (here, in one boot)")
        elif metric.name == deciding and len(values) < 2:
            words = (
                "a run is too long to try several; 'perfbisect workload run' says what the threshold takes"
            )
            yield WorkloadFinding("threshold", "note", words)
