"""Commits that cannot change the kernel: files that builds have read, against files that commits change."""

from __future__ import annotations

from pathlib import Path

from bisector.model.commit_graph import CommitGraph
from bisector.model.records import Irrelevant
from bisector.schemas.request import Accepted
from bisector.schemas.settings import Settings


class Pruning:
    """Which commits cannot change the kernels of one recipe. The history is read once."""

    def __init__(
        self, settings: Settings, repo: str | Path, recipe: str, arch: str = "", *, patched: bool = False
    ) -> None:
        """Take a recipe by its name. arch: by default the recipe's; patched: builds are of other trees."""
        from bisector.adapters.build.kernel_cache import KernelCache
        from bisector.adapters.git.changed_paths import Changes

        self._cache_dir = settings.cache_dir
        self._repo = Path(repo).expanduser()
        self._recipe, self._arch = recipe, arch
        self._patched = patched
        self._kernels = KernelCache(settings.cache_dir / "kernels")
        self._read: dict[str, tuple[str, frozenset[str]]] = {}
        self._changes: Changes | None = None

    def __call__(self, graph: CommitGraph) -> Irrelevant | None:
        """Return the commits that cannot change the kernel; None until both ends (and bases) are built."""
        from bisector.adapters.git.changed_paths import read_changes
        from bisector.linux.relevance import prune
        from bisector.schemas.kernel.recipe import load_recipe

        if self._patched:
            return None
        self._read_kernels()
        built = dict(self._read.values())
        around = {graph.shas[graph.bad], *(graph.shas[i] for i in graph.merge_bases or (graph.good,))}
        if not around <= built.keys():
            return None
        if self._changes is None:
            good, bad = graph.shas[graph.good], graph.shas[graph.bad]
            self._changes = read_changes(self._repo, good, bad, self._cache_dir / "graphs")
        inside = around | {sha for sha in graph.shas if sha in built}
        arch = self._arch or load_recipe(self._recipe).manifest.arch
        return prune(graph, self._changes, [built[sha] for sha in sorted(inside)], arch)

    @classmethod
    def of(cls, settings: Settings, accepted: Accepted) -> Pruning:
        """Return that of an accepted request."""
        request = accepted.request
        return cls(settings, request.repo, request.recipe, patched=bool(request.apply or request.with_fix))

    def _read_kernels(self) -> None:
        """Take in the kernels of the recipe that were built since the last look."""
        for entry in self._kernels.entries():
            if entry.key in self._read or entry.facts.get("recipe") != self._recipe:
                continue
            sources = entry.sources()
            if sources is not None and "sha" in entry.facts:
                self._read[entry.key] = (entry.facts["sha"], sources)
