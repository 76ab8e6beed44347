"""Commands on single kernels: build, explain, check, cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bisector.app.accept import recipe_for
from bisector.app.artefacts import shared_files
from bisector.app.execution.killed_work import end_killed_work
from bisector.app.upkeep.retention import needs
from bisector.app.wiring import Wiring
from bisector.errors import RequestError, SourceFailed

if TYPE_CHECKING:
    from bisector.ports import BuildOrder, Fix, Kernel, Progress
    from bisector.schemas.kernel.build_plan import BuildPlan


def order(
    wiring: Wiring,
    rev: str,
    recipe: str,
    *,
    layout: int = 0,
    patches: Sequence[Path] = (),
    with_fix: Sequence[str] = (),
) -> BuildOrder:
    """Return the order for one build of a commit. Raises RequestError: no such commit or fix."""
    from bisector.ports import BuildOrder

    sha = wiring.source().resolve(rev)
    return BuildOrder(sha, recipe, layout, tuple(patches), wiring.known_fixes(wiring.repo, with_fix))


def build(
    wiring: Wiring, order: BuildOrder, progress: Progress, on_fix: Callable[[Fix, bool], None]
) -> Kernel:
    """Build one commit, or take it from the cache or from another host.

    on_fix: called with each fix, and whether the commit needs it.
    """
    from bisector.adapters.git.backports import find_needed

    for fix in order.fixes:
        on_fix(fix, bool(find_needed(wiring.repo, order.sha, [fix])))
    end_killed_work(wiring.settings.cache_dir)
    try:
        return wiring.builder(share=shared_files.kernel_share(wiring)).build(order, progress)
    finally:
        shared_files.finish(wiring)


def kernel_plan(wiring: Wiring, order: BuildOrder) -> tuple[BuildPlan, dict[str, bool]]:
    """Return how a commit is built, and for each fixup that concerns its age whether it changes anything."""
    from bisector.adapters.build.builder import KernelBuilder

    trees = wiring.trees()
    plan = KernelBuilder(wiring.repo, wiring.settings.cache_dir, wiring.ansible()).plan(order).plan
    edited = trees.edited(trees.tree(order.sha, order.patches, order.fixes), plan.fixups)
    return plan, {row.name: row.name in edited for row in plan.fixups}


def check_range(
    wiring: Wiring, good: str, bad: str, recipe: str | None, *, install: bool = False
) -> dict[str, Any]:
    """Return whether a range can be built, by which rows, and what the builders of the lab lack for that.

    recipe: None for that of the settings; install: have the builders install the packages that they lack.
    """
    from bisector.adapters.build import range_check
    from bisector.schemas.kernel.build_plan import Tables
    from bisector.schemas.kernel.recipe import load_recipe

    source, trees = wiring.source(), wiring.trees()
    shas = [source.resolve(rev) for rev in (good, bad)]
    builders = [wiring.builder(name=host.name, install=install) for host in wiring.lab.builders]
    try:
        first, last = (trees.release(sha) for sha in shas)
    except SourceFailed as error:
        cure = error.cure or "name two commits that hold a Linux kernel"
        raise RequestError(error.message, details=error.details, cure=cure) from error
    if last < first:
        raise RequestError(
            f"{good}..{bad} is backwards: {first} is younger than {last}", cure=f"write {bad}..{good}"
        )
    name = recipe_for(trees, recipe or wiring.settings.recipe, *shas)
    return range_check.check_range(load_recipe(name), Tables.load(), first, last, builders)


def collect_kernels(wiring: Wiring, limit_bytes: int) -> tuple[int, int]:
    """Remove the kernels not used for longest until the limit holds.

    Return the bytes freed, and how many kernels stay because a bisection that can be resumed needs them.
    """
    needed = needs(wiring).kernels
    cache = wiring.kernel_cache
    freed = cache.shrink(limit_bytes, lambda: needed) + cache.drop_logs()
    return freed, sum(entry.key in needed for entry in cache.entries())
