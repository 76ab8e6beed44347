"""Jobs whose workload is a few lines of shell or C, for trying what can go wrong in a run."""

from pathlib import Path

from bisector.adapters.agent.payload import workload_job
from bisector.ports import Job
from bisector.schemas.workload.workload import load_workload

MANIFEST = """\
name: toy
description: A few lines.
metrics:
  - {{name: real, unit: s, better: lower, threshold: 5%, decides: true}}
build: {build}
files: {files}
run: [{file}]
timeout: {timeout}
settle: {settle}
environment: {{autogroup: off, variables: {{WORD: hello}}}}
"""


def shell_job(
    folder: Path, script: str, *, timeout: float = 20, settle: float = 0, results: str = "", cleanup: str = ""
) -> Job:
    """Return a job that runs `script`, and is read from `results`; it gets its own folder below `folder`.

    cleanup: a script, too.
    """
    place = folder / "toy"
    place.mkdir(parents=True)
    (place / "workload.yaml").write_text(
        MANIFEST.format(build=[], files="[toy.sh, cleanup.sh]", file="toy.sh", timeout=timeout, settle=settle)
        + (f"results: {results}\nparse: results\n" if results else "")
        + ("cleanup: [[sh, cleanup.sh]]\n" if cleanup else "")
    )
    (place / "cleanup.sh").write_text(cleanup)
    (place / "toy.sh").write_text("#!/bin/sh\n" + script)
    (place / "toy.sh").chmod(0o755)
    return workload_job(load_workload(str(place)), folder / "job")


def compiled_job(folder: Path, body: str, *, timeout: float = 60) -> Job:
    """Return a job whose program is a static one with this body of main()."""
    place = folder / "toy"
    place.mkdir(parents=True)
    build = '[["{cc}", -O1, -o, toy, toy.c]]'
    (place / "workload.yaml").write_text(
        MANIFEST.format(build=build, files="[toy]", file="toy", timeout=timeout, settle=0)
    )
    headers = "#include <stdio.h>\n#include <sys/reboot.h>\n#include <unistd.h>\n"
    (place / "toy.c").write_text(f"{headers}int main(void) {{ {body} }}\n")
    return workload_job(load_workload(str(place)), folder / "job")
