"""Whether a workload is fit to be searched with: its samples, its programs, one run here."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bisector.bootstrap.by_hand import try_workload
from bisector.core.words import count
from bisector.errors import PerfbisectError
from bisector.spec.workload import Workload


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. state: 'no' is a mistake to mend, 'note' is worth knowing."""

    what: str
    state: Literal["ok", "note", "no"]
    words: str


def check_workload(workload: Workload) -> Iterator[Finding]:
    """Look at a loaded workload, cheapest first; ends with one run on this machine if that is possible."""
    manifest = workload.manifest
    yield Finding(
        "manifest",
        "ok",
        f"{count(len(manifest.expanded_metrics()), 'metric')} at {count(len(manifest.points()), 'point')}",
    )
    yield from _samples(workload)
    missing = [name for name in manifest.requires.programs if shutil.which(name) is None]
    yield from _where(workload)
    if missing:
        words = f"not run here: no {', '.join(missing)}"
        yield Finding(
            "run", "note", f"{words} (packages: {', '.join(manifest.requires.packages) or 'unknown'})"
        )
        return
    yield from _run(workload)


def _samples(workload: Workload) -> Iterator[Finding]:
    from bisector.adapters.output import OutputError, parse
    from bisector.adapters.payload import metric_specs

    files = sorted((workload.folder / "samples").glob("*.txt"))
    if not files:
        yield Finding(
            "samples", "note", "there is no samples/*.txt: keep what a run printed, as a test of 'parse'"
        )
    for path in files:
        try:
            found = parse(
                workload.manifest.parse, path.read_text(errors="replace"), metric_specs(workload.manifest)
            )
        except OutputError as error:
            yield Finding(f"samples/{path.name}", "no", str(error))
        else:
            yield Finding(f"samples/{path.name}", "ok", f"{len(found)} metrics")


def _where(workload: Workload) -> Iterator[Finding]:
    manifest = workload.manifest
    packages = ", ".join(manifest.requires.packages)
    if packages:
        yield Finding(
            "guests", "note", f"get an image of their own with {packages}, built once (needs the network)"
        )
    if "initramfs" not in manifest.userspaces:
        yield Finding("old kernels", "note", "not for kernels that need an initramfs ('userspaces' says so)")
    for clock in ("wall", "instructions"):
        if clock not in manifest.clocks:
            yield Finding("clock", "note", f"cannot be decided by the clock '{clock}'")


def _run(workload: Workload) -> Iterator[Finding]:
    with tempfile.TemporaryDirectory(prefix="perfbisect-") as scratch:
        one = workload.manifest.model_copy(update={"warmup": 0, "settle": 0.0, "pause": 0.0})
        try:
            results = list(try_workload(Workload(workload.folder, one), 1, Path(scratch), lambda _: None))
        except PerfbisectError as error:
            yield Finding("run", "no", "\n".join(part for part in (error.message, error.details) if part))
            return
        for result in results:
            values = ", ".join(f"{name} {value:.6g}" for name, value in result.values.items())
            yield Finding("run", "ok", f"{result.seconds:.2f} s here; {values}")
            if result.seconds * 2 > workload.manifest.timeout:
                yield Finding("timeout", "note", f"{workload.manifest.timeout:g} s leave little room")
