"""Jobs whose workload is a few lines of shell, for trying what can go wrong in a run."""

from pathlib import Path

from bisector.adapters.payload import workload_job
from bisector.ports import Job
from bisector.spec.workload import load_workload

MANIFEST = """\
name: toy
description: A few lines of shell.
metrics:
  - {{name: real, unit: s, better: lower, threshold: 5%, decides: true}}
files: [toy.sh]
run: [toy.sh]
timeout: {timeout}
settle: {settle}
environment: {{autogroup: off, variables: {{WORD: hello}}}}
"""


def shell_job(folder: Path, script: str, *, timeout: float = 20, settle: float = 0) -> Job:
    """Return a job that runs `script`; it gets its own folder below `folder`."""
    place = folder / "toy"
    place.mkdir(parents=True)
    (place / "workload.yaml").write_text(MANIFEST.format(timeout=timeout, settle=settle))
    (place / "toy.sh").write_text("#!/bin/sh\n" + script)
    (place / "toy.sh").chmod(0o755)
    return workload_job(load_workload(str(place)), folder / "job")
