"""From a request to what is kept of it with the bisection: all of it resolved, or refused beforehand."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import bisector
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError, RequestError, SourceFailed
from bisector.model.commit_graph import CommitGraph
from bisector.model.goal import Goal, TestbedClock
from bisector.schemas import serialization
from bisector.schemas.request import Accepted, KnownFix, Request
from bisector.schemas.workload.compatibility import check_testbed
from bisector.schemas.workload.metric import parse_threshold
from bisector.schemas.workload.workload import Workload, load_workload

if TYPE_CHECKING:
    from bisector.ports import Fix, Source


def accept(wiring: Wiring, request: Request) -> tuple[Accepted, CommitGraph]:
    """Resolve everything in a request, or refuse it: RequestError, and nothing was changed."""
    from bisector.adapters.agent.payload import checksum
    from bisector.adapters.guest.debian_packages import check_packages
    from bisector.schemas.kernel.recipe import load_recipe, with_fragments

    workload = workload_of(request)
    workload.metric(request.metric)
    wanted = with_fragments(request.recipe, workload.manifest.requires.fragments)
    _known_recipe(wanted)
    repository = wiring.source(request.repo)
    good, bad = repository.resolve(request.good), repository.resolve(request.bad)
    graph = repository.graph(
        good, bad, first_parent=request.first_parent, paths=request.paths, skip=request.skip
    )
    _check_ends(wiring, repository, request, good, bad)
    fixes = tuple(
        KnownFix(sha=fix.sha, guilty=fix.guilty) for fix in _check_fixes(wiring, request, good, bad)
    )
    request = request.model_copy(update={"recipe": recipe_for(wiring, wanted, request.repo, good, bad)})
    names = request.testbeds or (wiring.lab.testbeds[0].name,)
    for name in names:
        spec = wiring.lab.testbed(name)
        check_testbed(workload, spec)
        if spec.variables.kind == "libvirt":
            check_packages(workload.manifest.packages())
    testbeds = [wiring.testbed(name) for name in names]
    clocks = {bed.clock for bed in testbeds}
    if len(clocks) > 1:
        raise RequestError(
            "testbeds with different clocks cannot be compared",
            details="\n".join(f"{bed.name}: {bed.clock}" for bed in testbeds),
            cure="name testbeds of one clock with --testbed",
        )
    clock = clocks.pop()
    workload.check_clock(clock)
    workload.check_userspace(load_recipe(request.recipe).manifest.userspace)
    accepted = Accepted(
        request=request,
        good=good,
        bad=bad,
        goal=serialization.goal_to_json(goal_of(request, workload, clock)),
        testbeds=tuple(names),
        clock=clock,
        workload=workload.name,
        workload_sum=checksum(workload.folder),
        recipe_sum=recipe_sum(wiring, request, good, bad),
        patch_sums=tuple(digest(Path(path)) for path in request.apply),
        fixes=fixes,
        version=bisector.__version__,
    )
    return accepted, graph


def workload_of(request: Request) -> Workload:
    """Return the workload as it is asked for: with its parameters and monitors. Raises RequestError."""
    return load_workload(request.workload).with_parameters(request.param).with_monitors(request.monitors)


def missing_monitors(accepted: Accepted) -> list[str]:
    """Return what the monitors that are asked for cannot give on these testbeds, each in words."""
    from bisector.schemas.kernel.recipe import load_recipe
    from bisector.schemas.workload.monitors import shortfalls

    request = accepted.request
    manifest = workload_of(request).manifest
    recipe = load_recipe(request.recipe).manifest
    clock: TestbedClock = "instructions" if accepted.clock == "instructions" else "wall"
    found = shortfalls(manifest.monitors, [recipe.userspace], [clock], (*recipe.required, *recipe.wanted))
    return [f"monitor {name}: {words}" for name, words in found]


def recipe_for(wiring: Wiring, name: str, repo: str | Path, *shas: str) -> str:
    """Return the one recipe by which all of these commits are built: the one that is named.

    For 'auto' it is the one for the youngest kernels that covers them. Raises RequestError if there is none.
    """
    from bisector.schemas.kernel.recipe import is_auto, resolve_recipe_name, with_default_recipe

    _known_recipe(name)
    if not is_auto(name):
        return name
    trees = wiring.trees(repo)
    try:
        return resolve_recipe_name(name, [trees.release(sha) for sha in shas])
    except SourceFailed:  # its Makefile names no release; what is wrong with it, the build will tell
        return with_default_recipe(name)


def goal_of(request: Request, workload: Workload, clock: str) -> Goal:
    """Return what the planner is told: the deciding metric with its threshold, alpha, budget and clock."""
    if clock not in ("wall", "instructions"):
        raise InfrastructureError(f"a testbed has the unknown clock '{clock}'")
    known: TestbedClock = "instructions" if clock == "instructions" else "wall"
    metric = workload.metric(request.metric, known)
    if request.threshold is not None:
        try:
            metric = dataclasses.replace(metric, threshold=parse_threshold(request.threshold, metric.unit))
        except ValueError as error:
            raise RequestError(f"--threshold: {error}") from error
    return Goal(
        metric=metric,
        alpha=request.alpha,
        budget=request.budget,
        clock=known,
        scan=request.scan,
    )


def _known_recipe(name: str) -> None:
    from bisector.schemas.kernel.recipe import load_recipe, with_default_recipe

    load_recipe(with_default_recipe(name))


def _check_ends(wiring: Wiring, repository: Source, request: Request, good: str, bad: str) -> None:
    """Refuse ends that no builder could build: inside the range such a commit is a skip, here all is lost."""
    for name, sha in (("good", good), ("bad", bad)):
        if not repository.holds_linux(sha):
            raise RequestError(
                f"the {name} end {sha[:12]} holds no Linux kernel",
                details="its tree has no Makefile, or neither 'kernel' nor 'Kbuild'",
                cure="give the git tree of the kernel with --repo, and two of its commits",
            )
    if request.apply:
        trees, patches = wiring.trees(request.repo), tuple(Path(path) for path in request.apply)
        cure = "give a patch that applies to both ends; where it does not in between is a skip"
        _must_apply("--apply", good, bad, lambda sha: trees.tree(sha, patches), cure)


def _check_fixes(wiring: Wiring, request: Request, good: str, bad: str) -> tuple[Fix, ...]:
    """Return the known fixes. Refuse one that an end needs and cannot have: in between it is a skip."""
    fixes = wiring.known_fixes(request.repo, request.with_fix)
    if fixes:
        trees = wiring.trees(request.repo)
        _must_apply("--with-fix", good, bad, lambda sha: trees.tree(sha, (), fixes))
    return fixes


def _must_apply(option: str, good: str, bad: str, make: Callable[[str], str], cure: str = "") -> None:
    """Refuse what an option puts on commits unless it applies to both ends. cure: if not the error's own."""
    for name, sha in (("good", good), ("bad", bad)):
        try:
            make(sha)
        except SourceFailed as error:
            raise RequestError(
                f"{option}: {error.message}, the {name} end", details=error.details, cure=cure or error.cure
            ) from error


def recipe_sum(wiring: Wiring, request: Request, *shas: str) -> str:
    """Return a checksum of how the ends are configured and compiled; empty if no rows can be chosen."""
    from bisector.schemas.kernel.build_plan import load_plan

    trees = wiring.trees(request.repo)
    try:
        digests = [load_plan(request.recipe, trees.release(sha), sha[:12]).digest() for sha in shas]
    except SourceFailed:  # what is wrong with such a commit, its build will tell
        return ""
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def check_unchanged(wiring: Wiring, accepted: Accepted) -> None:
    """Raise RequestError when kernels tested from now on would not be made as those tested so far."""
    request = accepted.request
    for path, known in zip(request.apply, accepted.patch_sums, strict=True):
        if digest(Path(path)) != known:
            raise RequestError(
                f"the patch {path} has changed since the bisection began", cure="start a new one"
            )
    if accepted.recipe_sum not in ("", recipe_sum(wiring, request, accepted.good, accepted.bad)):
        raise RequestError(
            f"the recipe '{request.recipe}', or a table it uses, has changed since the bisection began",
            details="kernels of before and after would differ by more than their commits",
            cure="start a new one, or put the files of 'kernels' back as they were",
        )


def digest(path: Path) -> str:
    """Return the SHA-256 (hex) of a file. Raises RequestError."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise RequestError(f"the patch {path} cannot be read", details=str(error)) from error
