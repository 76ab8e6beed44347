"""How to reproduce the result: commands for the kernels involved, and for the whole bisection."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from bisector.model.decisions import FOUND, Conclusion
from bisector.report import phrases
from bisector.report.report_model import Material
from bisector.schemas.request import command_line


def lines(material: Material, conclusion: Conclusion) -> list[str]:
    """Return the section of the report with the commands."""
    request = material.request
    repo = str(request.get("repo") or ".")
    own = f"{material.files.get('raw output', '.')}/workload/build"  # where a command became a workload
    workload = str(request.get("workload") or own)
    beds = [str(t) for t in request.get("testbeds") or ()]
    where = ["--testbed", beds[0]] if beds else []
    out = phrases.heading("How to reproduce")
    pairs = [(*f.parents[:1], f.commits[-1]) for f in conclusion.culprits if conclusion.ending in FOUND] or [
        (material.graph.good, material.graph.bad)
    ]
    involved = tuple(dict.fromkeys(index for pair in pairs for index in pair))
    attempt = material.attempt
    if attempt is not None:
        involved = tuple(range(len(material.graph.shas)))
    commands = []
    for index in involved:
        sha, extra = material.graph.shas[index], _selection(request)
        if attempt is not None and sha == attempt.tried and attempt.patches:
            sha = attempt.unpatched
            extra += [word for patch in attempt.patches for word in ("--apply", patch)]
        commands.append(["perfbisect", "kernel", "build", sha, "--repo", repo, *extra])
        commands.append(
            ["perfbisect", "workload", "run", workload, "--rev", sha, "--repo", repo, *extra, *where]
        )
    if attempt is None:
        commands.extend(["git", "-C", repo, "show", material.graph.shas[pair[-1]]] for pair in pairs)
    out += [f"  {shlex.join(c)}" for c in commands]
    whole = command_line(request) if attempt is None else attempt.command_line()
    out += [
        "",
        f"  The whole {'bisection' if attempt is None else 'comparison'} again:",
        f"  {shlex.join(whole)}",
    ]
    for index in involved:
        kernel = material.kernel(index)
        if kernel.config:
            out.append(f"  .config of {material.graph.shas[index][:12]}: {kernel.config}")
    return out


def _selection(request: Mapping[str, Any]) -> list[str]:
    out: list[str] = []
    if request.get("recipe"):
        out += ["--recipe", str(request["recipe"])]
    for patch in request.get("apply") or ():
        out += ["--apply", str(patch)]
    for fix in request.get("with_fix") or ():
        out += ["--with-fix", str(fix)]
    return out
