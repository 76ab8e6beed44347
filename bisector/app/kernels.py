"""The composition root for what is done to kernels by hand: explaining, checking, looking after the cache."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bisector.app import wiring
from bisector.app.accept import recipe_for
from bisector.errors import RequestError, SourceFailed
from bisector.resources import resource

if TYPE_CHECKING:
    from bisector.ports import BuildOrder
    from bisector.schemas.kernel.build_plan import BuildPlan
    from bisector.schemas.settings import Settings


def kernel_plan(settings: Settings, repo: str | Path, order: BuildOrder) -> tuple[BuildPlan, dict[str, bool]]:
    """Return how a commit is built, and for each fixup that concerns its age whether it changes anything."""
    from bisector.adapters.ansible.runner import Ansible
    from bisector.adapters.build.builder import KernelBuilder

    trees = wiring.trees(settings, repo)
    ansible = Ansible(resource("playbooks"), wiring.lab(settings).inventory)
    plan = KernelBuilder(Path(repo), settings.cache_dir, ansible).plan(order).plan
    edited = trees.edited(trees.tree(order.sha, order.patches, order.fixes), plan.fixups)
    return plan, {row.name: row.name in edited for row in plan.fixups}


def check_range(
    settings: Settings, repo: str | Path, good: str, bad: str, recipe: str, *, install: bool = False
) -> dict[str, Any]:
    """Return whether a range can be built, by which rows, and what the builders of the lab lack for that.

    install: have them install the Debian packages that they lack.
    """
    from bisector.adapters.build import range_check
    from bisector.schemas.kernel.build_plan import Tables
    from bisector.schemas.kernel.recipe import load_recipe

    the_lab = wiring.lab(settings)
    trees = wiring.trees(settings, repo)
    builders = [
        wiring.builder(settings, repo, the_lab, name=host.name, install=install) for host in the_lab.builders
    ]
    try:
        ends = trees.release(good), trees.release(bad)
    except SourceFailed as error:
        raise RequestError(error.message, details=error.details) from error
    name = recipe_for(settings, recipe, repo, good, bad)
    return range_check.check_range(load_recipe(name), Tables.load(), *ends, builders)


def kernels(settings: Settings) -> dict[str, Any]:
    """Return what the cache of kernels holds, the latest used first, as JSON holds it."""
    from bisector.adapters.build.kernel_cache import KernelCache

    return KernelCache(settings.cache_dir / "kernels").inventory()


def collect_kernels(settings: Settings, limit_bytes: int, needed: frozenset[str]) -> tuple[int, int]:
    """Remove kernels not used for longest; return the bytes freed, and how many `needed` were kept."""
    from bisector.adapters.build.kernel_cache import KernelCache

    cache = KernelCache(settings.cache_dir / "kernels")
    freed = cache.shrink(limit_bytes, keep=needed) + cache.drop_logs()
    return freed, sum(entry.key in needed for entry in cache.entries())
