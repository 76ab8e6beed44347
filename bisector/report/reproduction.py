"""How to reproduce the result: commands for the kernels involved, and for the whole bisection."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from bisector.model.records import Conclusion, Ending
from bisector.report import phrases
from bisector.report.report_model import Material


def lines(material: Material, conclusion: Conclusion) -> list[str]:
    """Return the section of the report with the commands."""
    request = material.request
    repo = str(request.get("repo") or ".")
    workload = str(request.get("workload") or "WORKLOAD")
    extra, beds = _selection(request), [str(t) for t in request.get("testbeds") or ()]
    where = ["--testbed", beds[0]] if beds else []
    out = phrases.heading("How to reproduce")
    pairs = [
        (*f.parents[:1], f.commits[-1])
        for f in conclusion.culprits
        if conclusion.ending in (Ending.CULPRIT, Ending.CULPRITS, Ending.CULPRIT_SET)
    ] or [(material.graph.good, material.graph.bad)]
    involved = tuple(dict.fromkeys(index for pair in pairs for index in pair))
    commands = []
    for index in involved:
        sha = material.graph.shas[index]
        commands.append(["perfbisect", "kernel", "build", sha, "--repo", repo, *extra])
        commands.append(
            ["perfbisect", "workload", "run", workload, "--rev", sha, "--repo", repo, *extra, *where]
        )
    commands.extend(["git", "-C", repo, "show", material.graph.shas[pair[-1]]] for pair in pairs)
    out += [f"  {shlex.join(c)}" for c in commands]
    out += ["", "  The whole bisection again:", f"  {shlex.join(start_command(request))}"]
    for index in involved:
        kernel = material.kernel(index)
        if kernel.config:
            out.append(f"  .config of {material.graph.shas[index][:12]}: {kernel.config}")
    return out


def start_command(request: Mapping[str, Any]) -> list[str]:
    """Return the command line that asks for the same bisection."""
    command = ["perfbisect", "start", "--repo", str(request.get("repo") or ".")]
    for name in ("good", "bad", "workload"):
        command += [f"--{name}", str(request.get(name, ""))]
    for name, values in (request.get("param") or {}).items():
        command += [word for value in values for word in ("--param", f"{name}={value}")]
    command += _selection(request)
    for testbed in request.get("testbeds") or ():
        command += ["--testbed", str(testbed)]
    for name in ("metric", "threshold", "alpha", "max_hours", "max_builds", "max_runs"):
        if request.get(name) not in (None, ""):
            command += [f"--{name.replace('_', '-')}", str(request[name])]
    if request.get("build_ahead"):
        command += ["--build-ahead", str(request["build_ahead"])]
    for name in ("first_parent", "scan"):
        if request.get(name):
            command.append(f"--{name.replace('_', '-')}")
    for skip in request.get("skip") or ():
        command += ["--skip", str(skip)]
    for monitor in request.get("monitors") or ():
        command += ["--monitor", str(monitor)]
    paths = [str(p) for p in request.get("paths") or ()]
    return command + (["--", *paths] if paths else [])


def _selection(request: Mapping[str, Any]) -> list[str]:
    out: list[str] = []
    if request.get("recipe"):
        out += ["--recipe", str(request["recipe"])]
    for patch in request.get("apply") or ():
        out += ["--apply", str(patch)]
    for fix in request.get("with_fix") or ():
        out += ["--with-fix", str(fix)]
    return out
