"""The files of a new workload: a script that prints one number, and a manifest of ten lines."""

from __future__ import annotations

import re
from pathlib import Path

from bisector.errors import RequestError
from bisector.schemas.workload.workload import MANIFEST

_MANIFEST = """\
# What every key means: workloads/README.md of perfbisect. Try it: perfbisect workload check ./{name}
name: {name}
description: Say in one sentence what it measures.
metrics:
  - {{name: real, unit: s, better: lower, threshold: 5%, decides: true}}
files: [{name}.sh]
run: [{name}.sh]
"""

_SCRIPT = """\
#!/bin/sh
# Prints 'NAME: NUMBER UNIT' for each metric of {manifest}; exit code 0 means that the number counts.
set -eu
start=$(cut -d ' ' -f 1 /proc/uptime)
for round in $(seq 500); do
    (:) # your work here: this forks five hundred times
done
end=$(cut -d ' ' -f 1 /proc/uptime)
echo "$start $end" | awk '{{ printf "real: %.2f s\\n", $2 - $1 }}'
"""

_README = """\
# {name}

Where it comes from, what it stresses, which clock can decide it, what it cannot see.
"""


def write_template(name: str, parent: Path) -> Path:
    """Write a complete small workload into a new folder, and return the folder. Raises RequestError."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name):
        raise RequestError(
            f"'{name}' is not a name for a workload", cure="use small letters, digits, '.', '_' and '-'"
        )
    folder = parent / name
    try:
        folder.mkdir(parents=True)
        (folder / MANIFEST).write_text(_MANIFEST.format(name=name), encoding="utf-8")
        (folder / "README.md").write_text(_README.format(name=name), encoding="utf-8")
        script = folder / f"{name}.sh"
        script.write_text(_SCRIPT.format(manifest=MANIFEST), encoding="utf-8")
        script.chmod(0o755)
        (folder / "samples").mkdir()
    except FileExistsError as error:
        raise RequestError(f"{folder} exists already", cure="choose another name or folder") from error
    except OSError as error:
        raise RequestError(
            f"cannot write {folder}: {error.strerror}", cure="name a folder that you may write to, with --in"
        ) from error
    return folder
