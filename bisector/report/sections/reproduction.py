"""How to reproduce the result: commands for the kernels involved, and for the whole bisection."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from bisector.model.commit_graph import short_name
from bisector.model.decisions import FOUND, Conclusion
from bisector.report import phrases
from bisector.report.report_model import Material, named
from bisector.schemas.request import command_line


def lines(material: Material, conclusion: Conclusion) -> list[str]:
    """Return the section of the report with the commands."""
    single, whole = commands(material, conclusion)
    again = "comparison" if material.attempt is not None else "bisection"
    out = [*phrases.heading("How to reproduce"), *(f"  {line}" for line in single)]
    out += ["", f"  The whole {again} again:", f"  {whole}"]
    return out + [
        f"  .config of {short_name(material.graph.shas[index])}: {config}"
        for index, config in configurations(material, conclusion)
    ]


def configurations(material: Material, conclusion: Conclusion) -> list[tuple[int, str]]:
    """Return the kernels involved, each with the path of its configuration, where one was recorded."""
    known = ((index, material.kernel(index).config) for index in _involved(material, conclusion))
    return [(index, config) for index, config in known if config]


def _pairs(material: Material, conclusion: Conclusion) -> list[tuple[int, ...]]:
    """Return each proven change after its parents; the two ends where nothing was found."""
    return [(*f.parents, f.commits[-1]) for f in conclusion.large if conclusion.ending in FOUND] or [
        (material.graph.good, material.graph.bad)
    ]


def _involved(material: Material, conclusion: Conclusion) -> tuple[int, ...]:
    if material.attempt is not None:
        return tuple(range(len(material.graph.shas)))
    return tuple(dict.fromkeys(index for pair in _pairs(material, conclusion) for index in pair))


def commands(material: Material, conclusion: Conclusion) -> tuple[list[str], str]:
    """Return the shell commands for the kernels involved, and the one for everything again."""
    request = material.request
    if material.goal.unit == "kernel":
        return _next_step(material, conclusion), shlex.join(command_line(request))
    repo = str(request.get("repo") or ".")
    own = f"{material.files.get('raw output', '.')}/workload/build"  # where a command became a workload
    workload = str(request.get("workload") or own)
    beds = [str(t) for t in request.get("testbeds") or ()]
    where = ["--testbed", beds[0]] if beds else []
    attempt = material.attempt
    found: list[list[str]] = []
    for index in _involved(material, conclusion):
        sha, extra = material.graph.shas[index], _selection(request)
        if attempt is not None and sha == attempt.tried and attempt.patches:
            sha = attempt.unpatched
            extra += [word for patch in attempt.patches for word in ("--apply", patch)]
        found.append(["perfbisect", "kernel", "build", sha, "--repo", repo, *extra])
        found.append(
            ["perfbisect", "workload", "run", workload, "--rev", sha, "--repo", repo, *extra, *where]
        )
    if attempt is None and conclusion.ending in FOUND:  # what an end alone changes says nothing
        for finding in conclusion.large:
            shown = named(finding) or finding.commits[-1:]
            found.append(["git", "-C", repo, "show", *(material.graph.shas[index] for index in shown)])
    whole = command_line(request) if attempt is None else attempt.command_line()
    return [shlex.join(command) for command in found], shlex.join(whole)


def _next_step(material: Material, conclusion: Conclusion) -> list[str]:
    """Return how the commit is found once the two packages are: between the releases that they are of.

    Comments of a shell explain what cannot be a command.
    """
    if conclusion.ending not in FOUND:
        return []
    out: list[str] = []
    for before, after in (pair for pair in _pairs(material, conclusion) if len(pair) == 2):
        names = [short_name(material.graph.shas[index]) for index in (before, after)]
        packages = [material.commit(index).subject for index in (before, after)]
        tags = [tag for pair in zip(names, packages, strict=True) if (tag := _upstream_tag(*pair))]
        both = " and ".join(names)
        if len(tags) < 2:
            out.append(f"# Between {both}: bisect the commits from which these were built.")
        elif tags[0] == tags[1]:
            out.append(
                f"# {both} are both of Linux {tags[0]}: look at what the distribution changed, patches and "
                "configuration."
            )
        else:
            out.append(f"# The commit: {both} are of Linux {tags[0]} and {tags[1]}. In a tree of both:")
            asked = {**material.request, "good": tags[0], "bad": tags[1], "repo": "linux"}
            if material.goal.find == "fix":
                asked |= {"good": tags[1], "bad": tags[0]}
            for name in ("kernels", "skip", "recipe"):
                asked.pop(name, None)
            out.append(shlex.join(command_line(asked)))
            out.append(
                "# If these do not differ: the distribution's patches or configuration made the change."
            )
    return out


_UPSTREAM = re.compile(r"(?:.*_)?(?:\d+:)?(?P<series>\d+\.\d+)(?P<patch>\.\d+)?(?:[-~+].*)?")
"""A package's version: an epoch, the release of Linux, the distribution's revision."""

_CANDIDATE = re.compile(r"rc\d")
"""Before a release: which one is written in too many ways, '7.1~rc5-1', '6.10.0-0.rc3.20240101git1'."""


def _upstream_tag(name: str, package: str) -> str:
    """Return the tag of the Linux that a package was made from, by its version; '' where that names none.

    package: its name; that of the folder where it is none, which people call as they like.
    """
    if re.sub(r"\W+", "-", name) == re.sub(r"\W+", "-", package):
        return ""
    found = _UPSTREAM.fullmatch(name)
    if found is None or found["patch"] == ".0" or _CANDIDATE.search(name):
        return ""  # Ubuntu calls all that it makes of a series X.Y.0, whichever stable release is in it
    return f"v{found['series']}{found['patch'] or ''}"


def _selection(request: Mapping[str, Any]) -> list[str]:
    out: list[str] = []
    if request.get("recipe"):
        out += ["--recipe", str(request["recipe"])]
    for patch in request.get("apply") or ():
        out += ["--apply", str(patch)]
    for fix in request.get("with_fix") or ():
        out += ["--with-fix", str(fix)]
    return out
