"""Builds kernels: `playbooks/build.yml` on a builder of the lab, a cache by content in front of it.

A build is named by its tree, recipe, layout and toolchain (`kernel_cache.kernel_key`). What is in the cache
is never built again; what is not is built by tuxmake on the builder, whose source lies at one fixed path and
whose output folder stays warm. `roles/build/files/build.sh` does the work there, under a lock.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.build_answer import check_answer
from bisector.adapters.build.build_play import BUILD_SECONDS, BuildPlay, FolderHolder
from bisector.adapters.build.failure import FailedBuild
from bisector.adapters.build.kernel_cache import CachedKernel, KernelCache, kernel_key
from bisector.adapters.build.kernel_share import KernelShare
from bisector.adapters.build.probe import BuilderFacts, WantedToolchain, probe_builder
from bisector.adapters.build.toolchain_notes import read_note, write_note
from bisector.adapters.git.trees import KernelTrees, patched_trees
from bisector.adapters.system.archive import unpack_tar
from bisector.errors import PerfbisectError, SourceFailed
from bisector.ports import BuildOrder, Fix, Kernel, Progress
from bisector.schemas.kernel.build_plan import BuildPlan, Tables, make_plan
from bisector.schemas.kernel.recipe import Recipe, load_recipe, resolve_recipe_name
from bisector.schemas.kernel.toolchain import Toolchain

_CACHE_BYTES = 10 << 30
"""The setting cache_gib's default: about 800 kernels of the default recipe (12 MB each)."""

_RESULT_BYTES_MAX = 16 << 30
"""Size of what a builder sends for a kernel: all modules with debug information have some GiB."""

_CCACHE_SIZE = "5G"
"""Some fifty quite different kernels of the default recipe."""


@dataclass(frozen=True, slots=True)
class PlannedBuild:
    """How a commit is built. tree: what is compiled, with patches and fixups in it."""

    plan: BuildPlan
    tree: str


@dataclass(slots=True)
class KernelBuilder:
    """The Builder port over Ansible. One build at a time in each folder of a builder; others wait.

    repository: the user's git tree (only read); cache: perfbisect's cache folder; host: a host of the lab's
    group 'builders'; system: names it in notes of what it has, whatever inventories call it; jobs: compiler
    processes at once (default: as many as the builder has CPUs); nice: 0 to 19. kernels: folder of recipes
    (default: the shipped one). mirror: where archives of toolchains are (URL); install: whether Debian
    packages that builders lack are installed. in_turn: holds the builder's machine while nobody measures
    there; told when it waits. user: who we are, for others who wait. share: with other hosts; needed: keys of
    kernels that stay in the cache. stop: see `Ansible.stop`.
    """

    repository: Path
    cache: Path
    ansible: Ansible
    host: str = "here"
    system: str = "here"
    jobs: int | None = None
    nice: int = 0
    kernels: Path | None = None
    timeout: float = BUILD_SECONDS
    cache_bytes: int = _CACHE_BYTES
    mirror: str | None = None
    install: bool = False
    in_turn: Callable[[Progress], AbstractContextManager[object]] = lambda _: nullcontext()
    user: str = "another process"
    share: KernelShare | None = None
    needed: Callable[[], frozenset[str]] = frozenset
    _other: FolderHolder = field(default_factory=FolderHolder, init=False, repr=False)
    _builders: dict[str, BuilderFacts] = field(default_factory=dict, init=False, repr=False)
    _recipes: dict[str, Recipe] = field(default_factory=dict, init=False, repr=False)
    _tables: Tables | None = field(default=None, init=False, repr=False)
    _planned: dict[tuple[str, str, tuple[Path, ...], tuple[Fix, ...]], PlannedBuild] = field(
        default_factory=dict, init=False, repr=False
    )

    def build(self, order: BuildOrder, progress: Progress) -> Kernel:
        """Build or fetch from the cache.

        Raises RequestError for an unknown commit, recipe, layout or patch; SourceFailed and BuildFailed when
        the commit is at fault (details: first error, path of the kept log); InfrastructureError otherwise.
        """
        started = time.monotonic()
        planned = self.plan(order)
        builder = self.probe(planned.plan.toolchain, progress)
        key = kernel_key(planned.tree, planned.plan.digest(order.layout), builder.toolchain)
        entry = self._store.get(key)
        if entry is not None:
            if self.share is not None:
                self.share.offer(entry)  # it may be older than the artefact store
            return self._describe_kernel(
                order, planned, entry, cached=True, seconds=time.monotonic() - started
            )

        stop = self.ansible.stop or (lambda: False)

        def build() -> CachedKernel:
            nonlocal started
            with self._store.making(key, progress, stop), self.in_turn(progress):
                started = time.monotonic()
                # The one we waited for may have built just this.
                return self._store.get(key) or self._build_kernel(order, planned, key, builder, progress)

        entry, seconds = self.share.obtain(key, build, stop, progress) if self.share else (build(), None)
        self._store.shrink(self.cache_bytes, lambda: self.needed() | {key})
        fetched = seconds is not None
        took = time.monotonic() - started if seconds is None else seconds
        return replace(
            self._describe_kernel(order, planned, entry, cached=fetched, seconds=took), fetched=fetched
        )

    def cached(self, order: BuildOrder) -> Kernel | None:
        """Return the kernel if it is in the cache already; asks no builder whose toolchain is known."""
        try:
            planned = self.plan(order)
        except SourceFailed:
            return None
        row = planned.plan.toolchain
        builder = self._builders.get(row.identity)
        toolchain = builder.toolchain if builder else read_note(self.cache, self.system, row)
        if toolchain is None:
            return None
        entry = self._store.get(kernel_key(planned.tree, planned.plan.digest(order.layout), toolchain))
        return self._describe_kernel(order, planned, entry, cached=True, seconds=0.0) if entry else None

    def plan(self, order: BuildOrder) -> PlannedBuild:
        """Return how a commit is built, changing nothing.

        Raises RequestError for an unknown commit, recipe or patch, SourceFailed if there is nothing to build:
        no Linux, no row that covers it, a patch or fixup that does not apply.
        """
        what = (order.sha, order.recipe, order.patches, order.fixes)
        if what not in self._planned:
            trees, where = self._kernel_trees, order.sha[:12]
            tree = trees.tree(order.sha, order.patches, order.fixes)
            release = trees.release(tree)
            recipe = self._recipe(resolve_recipe_name(order.recipe, [release], self.kernels))
            if self._tables is None:
                self._tables = Tables.load(self.kernels)
            made = make_plan(recipe, self._tables, release, where)
            self._planned[what] = PlannedBuild(made, trees.fixed(tree, made.fixups, where))
        return self._planned[what]

    # --- the steps of a build -------------------------------------------------------------------------------

    def _build_kernel(
        self, order: BuildOrder, planned: PlannedBuild, key: str, builder: BuilderFacts, progress: Progress
    ) -> CachedKernel:
        made, tree = planned.plan, planned.tree
        recipe, toolchain, trees = made.recipe, made.toolchain, self._kernel_trees
        work = self._store.make_workspace()
        try:
            pack = ""
            if not builder.here and tree not in builder.trees:
                progress(f"packing the source for '{self.host}'")
                pack = str(work / "source.pack")
                trees.pack(tree, builder.trees, Path(pack))
            variables = {
                "PB_FOLDER": builder.folder,
                "PB_TREE": tree,
                "PB_OBJECTS": "\n".join(map(str, trees.object_folders())) if builder.here else "",
                "PB_DOMAIN": self._name_domain(),
                "PB_KEY": key,
                "PB_OUT": f"{recipe.name}-{order.layout}",
                "PB_ARCH": recipe.manifest.arch,
                "PB_DRIVER": toolchain.driver,
                "PB_COMPILER": toolchain.compiler,
                "PB_CROSS": toolchain.cross,
                "PB_PROGRAMS": toolchain.programs,
                "PB_CONTAINER": toolchain.container,
                "PB_SHIM": toolchain.shim(),
                "PB_HOST_SHIM": toolchain.host_shim(),
                "PB_BASE": "" if recipe.base else recipe.manifest.base,
                "PB_REST": recipe.manifest.rest,
                "PB_CONFIG": made.config,
                "PB_REQUIRED": made.required,
                "PB_IMAGE": " ".join(recipe.manifest.image),
                "PB_FLAGS": recipe.flags(order.layout),
                "PB_JOBS": str(self.jobs or builder.cpus),
                "PB_NICE": str(self.nice),
                "PB_CCACHE_SIZE": _CCACHE_SIZE,
            }
            artefacts = work / "artefacts.tar"
            plays = self.cache / "builder" / "plays"
            play = BuildPlay(self.ansible, self.host, builder, self.user, plays, self.timeout, self._other)
            facts = play.play(
                variables,
                {
                    "perfbisect_pack": pack,
                    "perfbisect_base": recipe.base,
                    "perfbisect_artefacts": str(artefacts),
                },
                self._store.most_compiled(recipe.name) or recipe.manifest.files or 0,
                progress,
            )
            if pack:
                self._builders[toolchain.identity] = replace(builder, trees=(*builder.trees, tree))
            kernel = work / "kernel"
            unpack_tar(artefacts, kernel, max_bytes=_RESULT_BYTES_MAX)
            facts = check_answer(facts, kernel, order.sha[:12])
            if facts.get("status") != "ok":
                raise self._explain_failure(order, planned, key, facts, kernel / "build.log")
            facts |= {
                "toolchain": builder.toolchain,
                "sha": order.sha,
                "recipe": recipe.name,
                "layout": str(order.layout),
            }
            return self._store.put(key, kernel, facts)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def probe(self, toolchain: Toolchain, progress: Progress) -> BuilderFacts:
        """Ask the builder, once in the life of this object for each compiler, what it has.

        A toolchain that is an archive of the mirror is put there first; so are Debian packages if `install`.
        """
        if toolchain.identity not in self._builders:
            wanted = WantedToolchain(toolchain, self.mirror, install=self.install)
            found = probe_builder(self.ansible, self.host, self.cache, wanted, progress)
            write_note(self.cache, self.system, toolchain, found.toolchain)
            self._builders[toolchain.identity] = found
        return self._builders[toolchain.identity]

    def _explain_failure(
        self, order: BuildOrder, planned: PlannedBuild, key: str, facts: Mapping[str, str], log: Path
    ) -> PerfbisectError:
        """Return what a failed build means; its log is kept."""
        text = log.read_text(encoding="utf-8", errors="replace")
        failed = FailedBuild(
            commit=order.sha[:12],
            host=self.host,
            plan=planned.plan,
            facts=facts,
            log=text,
            log_path=self._store.keep_log(key, log),
        )
        return failed.error(partial(self._kernel_trees.defines, planned.tree))

    def _describe_kernel(
        self, order: BuildOrder, planned: PlannedBuild, entry: CachedKernel, *, cached: bool, seconds: float
    ) -> Kernel:
        recipe = planned.plan.recipe
        options, facts = entry.options(), entry.facts
        return Kernel(
            sha=order.sha,
            recipe=recipe.name,
            binary=facts["binary"],
            image=entry.image,
            config=entry.config,
            log=entry.log,
            release=facts["release"],
            build_id=facts["build_id"],
            seconds=seconds,
            cached=cached,
            sizes={name: int(facts[name]) for name in ("text", "data", "bss", "image") if name in facts},
            options=options,
            lost=planned.plan.not_granted(options),
            toolchain=facts.get("toolchain", ""),
            compiler=planned.plan.toolchain.identity,
            key=entry.key,
            userspace=recipe.manifest.userspace,
            arch=recipe.manifest.arch,
            modules=entry.modules,
            load=recipe.manifest.load,
        )

    # --- what is asked more than once -----------------------------------------------------------------------

    @property
    def _store(self) -> KernelCache:
        return KernelCache(self.cache / "kernels")

    @property
    def _kernel_trees(self) -> KernelTrees:
        return KernelTrees(self.repository, patched_trees(self.cache))

    def _recipe(self, name: str) -> Recipe:
        if name not in self._recipes:
            self._recipes[name] = load_recipe(name, self.kernels)
        return self._recipes[name]

    def _name_domain(self) -> str:
        """Return the name of the user's repository on a builder, where each one's builds are kept apart."""
        objects = self._kernel_trees.object_folders()[0]
        return hashlib.sha256(f"{platform.node()}:{objects}".encode()).hexdigest()[:16]
