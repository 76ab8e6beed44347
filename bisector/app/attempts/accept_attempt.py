"""Whether a change mends a culprit: what `perfbisect try` asks for becomes a bisection of three kernels."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import bisector
from bisector.app.accept import recipe_sum, workload_of
from bisector.app.load_report import find_bisection
from bisector.errors import RequestError, SourceFailed
from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import FOUND
from bisector.schemas import serialization
from bisector.schemas.kernel.patch_files import digest
from bisector.schemas.request import Accepted, Attempt, Request, read_accepted
from bisector.schemas.workload.sample_keys import sample_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bisector.app.wiring import Wiring
    from bisector.model.stored_bisection import Stored


def accept_attempt(
    wiring: Wiring,
    identity: str | None,
    patches: Sequence[Path],
    rev: str | None,
    *,
    max_hours: float | None = None,
) -> tuple[Accepted, CommitGraph]:
    """Return what is to be measured: the culprit's parent, the unpatched commit, what is tried.

    identity: of a bisection that found a culprit, the latest of all if None. Patches are put on `rev`, or on
    the culprit; without patches `rev` itself is tried. Raises RequestError, with git's words where one does
    not apply.
    """
    from bisector.adapters.agent.workload_sources import source_checksum

    stored = find_bisection(wiring, identity)
    earlier = read_accepted(stored.request)
    culprit, parent = _culprit(stored, earlier)
    request = earlier.request.model_copy(
        update={
            **{
                name: Request.model_fields[name].default
                for name in ("skip", "paths", "max_builds", "max_runs")
            },
            "max_hours": max_hours,
            "scan": False,
            "good": parent,
        }
    )
    source = wiring.source_of(request)
    named = source.resolve(rev) if rev is not None else culprit
    if not patches and named in (culprit, parent):
        what = "the culprit" if named == culprit else "the culprit's parent"
        raise RequestError(
            f"{named[:12]} is {what}", cure="name the commit to try with --rev, or a patch with --apply"
        )
    if not patches and _is_before(stored.graph, named, culprit):
        raise RequestError(
            f"{named[:12]} is before the culprit {culprit[:12]}: it has nothing to mend",
            cure="name a commit that contains the culprit with --rev, or a patch with --apply",
        )
    unpatched = named if patches else culprit
    sums = tuple(digest(path) for path in patches)
    attempt = Attempt(
        of=stored.id,
        culprit=culprit,
        unpatched=unpatched,
        tried=hashlib.sha256(" ".join((unpatched, *sums)).encode()).hexdigest()[:40] if patches else named,
        patches=tuple(map(str, patches)),
        sums=sums,
    )
    _check_patches(wiring, earlier, unpatched, patches)
    request = request.model_copy(update={"bad": unpatched})
    workload = workload_of(request)
    goal = replace(earlier.the_goal(), budget=request.budget, scan=False)
    accepted = earlier.model_copy(
        update={
            "request": request,
            "good": parent,
            "bad": unpatched,
            "goal": serialization.goal_to_json(goal),
            "workload_sum": source_checksum(workload),
            "sample_keys": sample_keys(workload.manifest),
            "recipe_sum": recipe_sum(wiring.trees(request.repo), request.recipe, parent, unpatched),
            "version": bisector.__version__,
            "attempt": attempt,
        }
    )
    shas = (parent, unpatched, attempt.tried)
    return accepted, CommitGraph(shas, ((), (0,), (1,)), (False, True, True), good=0, bad=1)


def _culprit(stored: Stored, accepted: Accepted) -> tuple[str, str]:
    """Return the culprit with the largest effect, and a parent that it was compared with."""
    cure = "'perfbisect list' shows what each has found"
    if accepted.attempt is not None:
        raise RequestError(
            f"'{stored.id}' is itself a try, of '{accepted.attempt.of}'",
            cure=f"name '{accepted.attempt.of}' in its place",
        )
    if accepted.the_goal().unit == "kernel":
        raise RequestError(
            f"the bisection '{stored.id}' compared listed kernels: there is no commit to try a change on",
            cure=f"'perfbisect report {stored.id}' says how to find the commit; name that bisection then",
        )
    if accepted.request.find == "fix":
        raise RequestError(
            f"the bisection '{stored.id}' looked for a fix; there is no loss to mend", cure=cure
        )
    conclusion = stored.conclusion
    found = conclusion.culprits if conclusion is not None and conclusion.ending in FOUND else ()
    proven = [finding for finding in found if finding.parents]
    if not proven:
        raise RequestError(f"the bisection '{stored.id}' has found no culprit", cure=cure)
    largest = max(proven, key=lambda finding: abs(finding.effect.estimate))
    return stored.graph.shas[largest.commits[-1]], stored.graph.shas[largest.parents[0]]


def _is_before(graph: CommitGraph, commit: str, culprit: str) -> bool:
    """Return whether a commit of the range, or its good end, is an ancestor of the culprit.

    It is as fast as the parent because the loss is not there yet, and would be told to mend it.
    """
    from bisector.model.dag import CommitDag

    places = {sha: index for index, sha in enumerate(graph.shas)}
    return commit in places and CommitDag(graph).is_ancestor(places[commit], places[culprit])


def _check_patches(wiring: Wiring, accepted: Accepted, commit: str, patches: Sequence[Path]) -> None:
    """Refuse patches that do not apply to their commit, on top of what the bisection puts on every one."""
    if not patches:
        return
    from bisector.ports import Fix

    below = tuple(Path(path) for path in accepted.request.apply)
    fixes = tuple(Fix(fix.sha, fix.guilty) for fix in accepted.fixes)
    try:
        wiring.trees(accepted.request.repo).tree(commit, (*below, *patches), fixes)
    except SourceFailed as error:
        raise RequestError(
            f"--apply: {error.message}",
            details=error.details,
            cure="give a patch that applies to it, or name the commit that it is for with --rev",
        ) from error
