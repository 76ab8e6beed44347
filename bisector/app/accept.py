"""From a request to what is kept of it with the bisection: all of it resolved, or refused beforehand."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import bisector
from bisector.app.testbeds.testbed_choice import choose_testbeds
from bisector.app.wiring import Wiring
from bisector.errors import NoKernel, RequestError, SourceFailed
from bisector.model.commit_graph import CommitGraph
from bisector.model.goal import Goal, TestbedClock
from bisector.model.stored_bisection import ENDED
from bisector.schemas import serialization
from bisector.schemas.commit_priors import Priors
from bisector.schemas.kernel.patch_files import check_patches, digest
from bisector.schemas.request import Accepted, KnownFix, Request
from bisector.schemas.workload.command_workload import command_workload
from bisector.schemas.workload.compatibility import check_recipe, recipe_serves
from bisector.schemas.workload.counted_metrics import is_modelled
from bisector.schemas.workload.metric import parse_threshold
from bisector.schemas.workload.sample_keys import require_same_samples, sample_keys
from bisector.schemas.workload.workload import Workload, load_requested

if TYPE_CHECKING:
    from bisector.adapters.git.trees import KernelTrees
    from bisector.ports import Fix, Source
    from bisector.schemas.kernel.cpu_model import CpuModel
    from bisector.store_ports import Store


def accept(wiring: Wiring, request: Request) -> tuple[Accepted, CommitGraph]:
    """Resolve everything in a request for commits, or refuse it: RequestError, and nothing was changed."""
    from bisector.adapters.git.named_priors import priors_of
    from bisector.schemas.kernel.recipe import load_recipe, with_default_recipe

    workload = workload_of(request)
    workload.metric(request.metric)
    load_recipe(with_default_recipe(_recipe(request, workload)))
    source = wiring.source_of(request)
    good, bad = source.resolve(request.good), source.resolve(request.bad)
    graph = source.graph(
        *request.oldest_first(good, bad),
        first_parent=request.first_parent,
        paths=request.paths,
        skip=request.skip,
        terms=request.terms,
    )
    return accept_ends(wiring, request, good, bad, priors_of(request, graph)), graph


def accept_ends(
    wiring: Wiring, request: Request, good: str, bad: str, priors: Priors | None = None
) -> Accepted:
    """Return the same of two commits (full ids), whatever lies between them. Raises RequestError."""
    from bisector.adapters.agent.workload_sources import source_checksum
    from bisector.schemas.kernel.recipe import is_auto, load_recipe

    workload = workload_of(request)
    recipe = _recipe(request, workload)
    trees = wiring.trees(request.repo)
    _check_ends(wiring.source_of(request), good, bad)
    trees.require_files(good, bad)
    fixes = wiring.known_fixes(request.repo, request.with_fix)
    _check_patches(trees, request, fixes, good, bad)
    choice = choose_testbeds(wiring, request, workload)
    testbeds, clock = choice.testbeds, choice.clock
    chosen = recipe_for(trees, recipe, good, bad, measures=(wiring, workload, testbeds))
    check_recipe(workload, load_recipe(chosen), named=not is_auto(recipe))
    accepted = Accepted(
        request=request.model_copy(update={"recipe": chosen}),
        good=good,
        bad=bad,
        goal=serialization.goal_to_json(goal_of(request, workload, clock)),
        testbeds=testbeds,
        clock=clock,
        workload=workload.name,
        workload_sum=source_checksum(workload),
        sample_keys=sample_keys(workload.manifest),
        recipe_sum=recipe_sum(trees, chosen, good, bad),
        recipe_chosen=is_auto(recipe),
        testbeds_chosen=not request.testbeds,
        patch_sums=tuple(digest(Path(path)) for path in request.apply),
        fixes=tuple(KnownFix(sha=fix.sha, guilty=fix.guilty) for fix in fixes),
        version=bisector.__version__,
        cpu=modelled_processor(workload),
        priors=priors,
    )
    if is_auto(recipe) and wiring.has_store:
        accepted = _as_begun(wiring, trees, recipe, accepted)
    return accepted


def modelled_processor(workload: Workload) -> CpuModel | None:
    """Return the processor whose caches are modelled. Raises RequestError for one that is not known."""
    from bisector.schemas.kernel.cpu_model import cpu_model

    name = workload.modelled_processor()
    return None if name is None else cpu_model(name)


def _recipe(request: Request, workload: Workload) -> str:
    """Return the recipe that is asked for, with what the workload needs."""
    from bisector.schemas.kernel.recipe import with_fragments

    return with_fragments(request.recipe, workload.manifest.requires.fragments)


def _as_begun(wiring: Wiring, trees: KernelTrees, recipe: str, accepted: Accepted) -> Accepted:
    """Return the request with the recipe that its unfinished bisection was begun with.

    Earlier versions chose it without regard to the workload; a search goes on with the kernels that it has.
    """
    earlier = recipe_for(trees, recipe, accepted.good, accepted.bad)
    as_begun = accepted.model_copy(
        update={
            "request": accepted.request.model_copy(update={"recipe": earlier}),
            "recipe_sum": recipe_sum(trees, earlier, accepted.good, accepted.bad),
            "recipe_chosen": False,
        }
    )
    begun = earlier != accepted.request.recipe and find_unfinished(wiring.store, as_begun)[1] != ""
    return as_begun if begun else accepted


def workload_of(request: Request) -> Workload:
    """Return the workload as it is asked for: with its parameters and monitors. Raises RequestError."""
    asked = (
        command_workload(
            request.run,
            request.metric,
            higher_is_better=request.higher_is_better,
            threshold=request.threshold or "",
        )
        if request.run
        else load_requested(request.workload)
    )
    asked = asked.with_parameters(request.param).with_monitors(request.monitors)
    return asked.with_counter(request.metric)


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


def recipe_for(
    trees: KernelTrees,
    name: str,
    *shas: str,
    measures: tuple[Wiring, Workload, Sequence[str]] | None = None,
) -> str:
    """Return the one recipe that builds all of these commits: the named one, or for 'auto' a chosen one.

    See `choose_recipe` for the choice. measures: the workload, and the testbeds that it is for. Raises
    RequestError if there is none.
    """
    from bisector.schemas.kernel.recipe import is_auto, load_recipe, resolve_recipe_name, with_default_recipe

    load_recipe(with_default_recipe(name))
    if not is_auto(name):
        return name
    try:
        releases = [trees.release(sha) for sha in shas]
        if measures is None:
            return resolve_recipe_name(name, releases)
        wiring, workload, testbeds = measures
        specs = [wiring.lab.testbed(testbed) for testbed in testbeds]
        return resolve_recipe_name(
            name, releases, serves=lambda recipe: recipe_serves(workload, recipe, specs)
        )
    except SourceFailed:  # its Makefile names no release; what is wrong with it, the build will tell
        return with_default_recipe(name)


def goal_of(request: Request, workload: Workload, clock: TestbedClock) -> Goal:
    """Return the planner's goal: the deciding metric with its threshold, alpha, budget and clock."""
    metric = workload.metric(request.metric, clock)
    if request.threshold is not None:
        try:
            metric = dataclasses.replace(metric, threshold=parse_threshold(request.threshold, metric.unit))
        except ValueError as error:
            raise RequestError(f"--threshold: {error}", cure="write for example --threshold 5%") from error
    return Goal(
        metric=metric,
        alpha=request.alpha,
        budget=request.budget,
        clock=clock,
        scan=request.scan,
        find=request.find,
        unit="kernel" if request.kernels else "commit",
        modelled=clock == "instructions" and any(map(is_modelled, workload.needed_counters())),
        fresh_seeds=clock == "instructions" and workload.manifest.environment.seed is not None,
    )


def _check_ends(source: Source, good: str, bad: str) -> None:
    """Refuse ends that no builder could build: a commit in between would be skipped, an end cannot be."""
    for name, sha in (("good", good), ("bad", bad)):
        if not source.holds_linux(sha):
            raise NoKernel(
                f"the {name} end {sha[:12]} holds no Linux kernel",
                details="its tree has no Makefile, or neither 'kernel' nor 'Kbuild'",
                cure="give the git tree of the kernel with --repo, and two of its commits",
            )


def _check_patches(trees: KernelTrees, request: Request, fixes: tuple[Fix, ...], good: str, bad: str) -> None:
    """Refuse patches and fixes that do not apply to both ends.

    Inside the range the commit is skipped; an end cannot be.
    """
    if request.apply:
        patches = tuple(Path(path) for path in request.apply)
        cure = "give a patch that applies to both ends; where it does not in between is a skip"
        _must_apply("--apply", good, bad, lambda sha: trees.tree(sha, patches), cure)
    if fixes:
        _must_apply("--with-fix", good, bad, lambda sha: trees.tree(sha, (), fixes))


def _must_apply(option: str, good: str, bad: str, make: Callable[[str], str], cure: str = "") -> None:
    """Refuse an option whose changes do not apply to both ends. cure: in place of the error's own."""
    for name, sha in (("good", good), ("bad", bad)):
        try:
            make(sha)
        except SourceFailed as error:
            raise RequestError(
                f"{option}: {error.message}, the {name} end", details=error.details, cure=cure or error.cure
            ) from error


def recipe_sum(trees: KernelTrees, recipe: str, *shas: str) -> str:
    """Return a checksum of how the ends are configured and compiled; empty if no rows can be chosen."""
    from bisector.schemas.kernel.build_plan import load_plan

    try:
        digests = [load_plan(recipe, trees.release(sha), sha[:12]).digest() for sha in shas]
    except SourceFailed:  # what is wrong with such a commit, its build will tell
        return ""
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def check_unchanged(wiring: Wiring, accepted: Accepted) -> None:
    """Raise RequestError when kernels would now be made or measured in another way than those tested so far.

    Called in each worker of a bisection, since each has files of its own.
    """
    from bisector.schemas.kernel.cpu_model import require_unchanged

    request = accepted.request
    check_patches(request.apply, accepted.patch_sums)
    workload = workload_of(request)
    require_same_samples(accepted.sample_keys, workload, accepted.version)
    if accepted.cpu is not None:
        require_unchanged(accepted.cpu, workload.modelled_processor() or "")
    if accepted.kernels:  # whose files are compared with their checksums before they are unpacked
        return
    now = recipe_sum(wiring.trees(request.repo), request.recipe, accepted.good, accepted.bad)
    if accepted.recipe_sum not in ("", now):
        raise RequestError(
            f"the recipe '{request.recipe}', or a table it uses, has changed since the bisection began",
            details="kernels of before and after would differ by more than their commits",
            cure="start a new one, or put the files of 'kernels' back as they were",
        )


def find_unfinished(store: Store, accepted: Accepted) -> tuple[str, str]:
    """Return the id and status of the request's unfinished bisection, or an id that is free and no status."""
    plain = accepted.workload.replace("/", "-")  # an id is the name of a folder and part of a URL
    base = f"{'try-' if accepted.attempt is not None else ''}{plain}-{accepted.identity()}"
    for number in itertools.count(1):
        name = base if number == 1 else f"{base}-{number}"
        try:
            status = store.status(name)
        except RequestError:
            return name, ""
        if status not in ENDED:
            return name, status
    raise AssertionError("the loop returns")
