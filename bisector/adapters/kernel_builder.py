"""Builds kernels: `playbooks/build.yml` on a builder of the lab, a cache by content in front of it.

A build is named by its tree, recipe, layout and toolchain (`kernel_cache.kernel_key`). What is in the cache
is never built again; what is not is built by tuxmake on the builder, whose source lies at one fixed path and
whose output folder stays warm. `roles/build/files/build.sh` does the work there, under a lock.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bisector.adapters.ansible import Ansible
from bisector.adapters.build_log import excerpt, judge, without_folder
from bisector.adapters.kernel_cache import Entry, KernelCache, disk_error, facts_from, kernel_key, locked
from bisector.adapters.kernel_tree import KernelTrees, patched_trees
from bisector.errors import BuildFailed, InfrastructureError, SourceFailed
from bisector.ports import BuildOrder, Kernel, Progress
from bisector.spec.recipe import Recipe, load_recipe

_PROBE_SECONDS = 300.0
"""A play of one task takes 2 s; a new remote builder gets tuxmake installed in it."""

_BUILD_SECONDS = 4 * 3600.0
"""Far above any build seen (minutes): only a machine that hangs gets here."""

_CACHE_BYTES = 10 << 30
"""About 800 kernels of the default recipe (12 MB each)."""

_CCACHE_SIZE = "5G"
"""Some fifty quite different kernels of the default recipe."""

_TELL_SECONDS = 5.0
"""How often progress is told while compiling."""

_KILOBYTES_NEEDED = 64 * 1024
"""A builder with less than 64 MiB left after a failed build had no room, whatever the compiler said."""


_LINE_CHARACTERS = 160
"""Of the line that tells why: messages of compilers are longer only where they quote generated code."""


@dataclass(frozen=True, slots=True)
class _Builder:
    """What the probe said of a builder. here: it shares our files, so the source need not be sent."""

    folder: str
    here: bool
    cpus: int
    toolchain: str
    trees: tuple[str, ...]


@dataclass(slots=True)
class KernelBuilder:
    """The Builder port over Ansible. One build at a time for each builder; a second process waits.

    repository: the user's git tree (only read); cache: perfbisect's cache folder; host: a host of the lab's
    group 'builders'; jobs: compiler processes at once (default: as many as the builder has CPUs); nice: 0 to
    19. kernels: folder of recipes (default: the shipped one). stop: see `Ansible.stop`.
    """

    repository: Path
    cache: Path
    ansible: Ansible
    host: str = "here"
    jobs: int | None = None
    nice: int = 0
    kernels: Path | None = None
    timeout: float = _BUILD_SECONDS
    cache_bytes: int = _CACHE_BYTES
    _builder: _Builder | None = field(default=None, init=False, repr=False)
    _recipes: dict[str, Recipe] = field(default_factory=dict, init=False, repr=False)
    _trees: dict[tuple[str, tuple[Path, ...]], str] = field(default_factory=dict, init=False, repr=False)

    def build(self, order: BuildOrder, progress: Progress) -> Kernel:
        """Build or fetch from the cache.

        Raises RequestError for an unknown commit, recipe, layout or patch; SourceFailed and BuildFailed when
        the commit is at fault (details: first error, path of the kept log); InfrastructureError otherwise.
        """
        started = time.monotonic()
        recipe = self._recipe(order.recipe)
        tree = self._tree(order)
        builder = self._look(recipe, progress)
        key = kernel_key(tree, recipe, order.layout, builder.toolchain)
        entry = self._store.get(key)
        if entry is not None:
            return self._kernel(order, recipe, entry, cached=True, seconds=time.monotonic() - started)

        def waiting() -> None:
            progress(f"waiting for another process that builds on '{self.host}'")

        with locked(self.cache / "builder" / f"{self.host}.lock", waiting, self.ansible.stop):
            entry = self._store.get(key)  # the one we waited for may have built just this
            if entry is None:
                entry = self._make(order, recipe, tree, key, builder, progress)
                self._store.shrink(self.cache_bytes, keep=frozenset({key}))
        return self._kernel(order, recipe, entry, cached=False, seconds=time.monotonic() - started)

    def cached(self, order: BuildOrder) -> Kernel | None:
        """Return the kernel if it is in the cache already; asks no builder whose toolchain is known."""
        recipe = self._recipe(order.recipe)
        toolchain = self._builder.toolchain if self._builder else self._known_toolchain(recipe)
        if toolchain is None:
            return None
        try:
            tree = self._tree(order)
        except SourceFailed:
            return None
        entry = self._store.get(kernel_key(tree, recipe, order.layout, toolchain))
        return self._kernel(order, recipe, entry, cached=True, seconds=0.0) if entry else None

    # --- the steps of a build -------------------------------------------------------------------------------

    def _make(
        self, order: BuildOrder, recipe: Recipe, tree: str, key: str, builder: _Builder, progress: Progress
    ) -> Entry:
        manifest = recipe.manifest
        trees = self._kernel_trees
        work = self._workspace()
        try:
            pack = ""
            if not builder.here and tree not in builder.trees:
                progress(f"packing the source for '{self.host}'")
                pack = str(work / "source.pack")
                trees.pack(tree, builder.trees, Path(pack))
            variables = {
                "PB_FOLDER": builder.folder,
                "PB_TREE": tree,
                "PB_OBJECTS": ":".join(map(str, trees.object_folders())) if builder.here else "",
                "PB_KEY": key,
                "PB_OUT": f"{recipe.name}-{order.layout}",
                "PB_ARCH": manifest.arch,
                "PB_TOOLCHAIN": manifest.toolchain,
                "PB_BASE": manifest.base,
                "PB_CONFIG": recipe.config,
                "PB_REQUIRED": "".join(f"{option.line}\n" for option in recipe.required),
                "PB_IMAGE": manifest.image,
                "PB_FLAGS": recipe.flags(order.layout),
                "PB_JOBS": str(self.jobs or builder.cpus),
                "PB_NICE": str(self.nice),
                "PB_CCACHE_SIZE": _CCACHE_SIZE,
            }
            folder = Path(builder.folder) if builder.here else None
            watch = _Watch(folder, self._store.most_compiled(), progress, self.ansible.stop)
            artefacts = work / "artefacts.tar"
            played = replace(self.ansible, stop=watch).play(
                "build",
                limit=self.host,
                variables={
                    "perfbisect_build": variables,
                    "perfbisect_pack": pack,
                    "perfbisect_artefacts": str(artefacts),
                },
                folder=self.cache / "builder" / "plays",
                timeout=self.timeout,
                progress=progress,
            )
            if pack:
                self._builder = replace(builder, trees=(*builder.trees, tree))
            facts = facts_from(str(played.result("building").get("stdout", "")))
            played.log.unlink(missing_ok=True)
            kernel = work / "kernel"
            _unpack(artefacts, kernel)
            if facts.get("status") != "ok":
                self._fail(order, recipe, key, facts, kernel / "build.log")
            facts["toolchain"] = builder.toolchain
            return self._store.put(key, kernel, facts)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _look(self, recipe: Recipe, progress: Progress) -> _Builder:
        """Ask the builder once in the life of this object what it has."""
        if self._builder is not None:
            return self._builder
        toolchain = recipe.manifest.toolchain
        played = self.ansible.play(
            "builder",
            limit=self.host,
            variables={
                "perfbisect_shared_folder": str(self.cache.absolute()),
                "perfbisect_toolchain": toolchain,
                "perfbisect_tuxmake": importlib.metadata.version("tuxmake"),
            },
            folder=self.cache / "builder" / "plays",
            timeout=_PROBE_SECONDS,
            progress=progress,
        )
        facts = facts_from(str(played.result("looking at the builder").get("stdout", "")))
        played.log.unlink(missing_ok=True)
        if facts.get("missing"):
            raise InfrastructureError(
                f"the builder '{self.host}' lacks: {facts['missing']}",
                cure="run 'make deps' there, or install the Debian packages with these programs",
            )
        self._builder = _Builder(
            folder=facts["folder"],
            here=facts["here"] == "yes",
            cpus=int(facts["cpus"]),
            toolchain=facts["toolchain"],
            trees=tuple(facts.get("trees", "").split()),
        )
        self._remember_toolchain(toolchain, self._builder.toolchain)
        return self._builder

    def _fail(self, order: BuildOrder, recipe: Recipe, key: str, facts: Mapping[str, str], log: Path) -> None:
        """Raise what a failed build means; its log is kept."""
        text = log.read_text(encoding="utf-8", errors="replace")
        kept = self._store.keep_log(key, log)
        short, where = order.sha[:12], f"log: {kept}"
        status = facts.get("status", "")
        if status == "not-linux":
            raise SourceFailed(
                f"{short} holds no Linux kernel", details="its tree has no Makefile, Kconfig and Kbuild"
            )
        if status == "refused":
            lines = [line for line in text.splitlines() if line.startswith("required option not granted: ")]
            names = ", ".join(line.rsplit(": ", 1)[1] for line in lines)
            raise BuildFailed(
                f"{short} does not grant what the recipe '{recipe.name}' requires: {names}",
                details=where,
                cure=f"make it 'wanted' in {recipe.path} if kernels without it may be compared",
            )
        failure = judge(text)
        if (
            failure.blame == "infrastructure"
            or int(facts.get("free_kb") or _KILOBYTES_NEEDED) < _KILOBYTES_NEEDED
        ):
            full = failure.blame == "kernel" or "disk is full" in failure.what
            raise InfrastructureError(
                f"building {short} on '{self.host}' failed: {'the disk is full' if full else failure.what}",
                details=f"{failure.line}\n{where}",
                cure="free some space there" if full else "run 'perfbisect doctor'",
            )
        said = f": {without_folder(failure.line)[:_LINE_CHARACTERS]}" if failure.line else ""
        raise BuildFailed(
            f"{short} does not build: {failure.what}{said}",
            details=f"{excerpt(text, failure.line)}\n{where}",
        )

    def _kernel(
        self, order: BuildOrder, recipe: Recipe, entry: Entry, *, cached: bool, seconds: float
    ) -> Kernel:
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
            lost=recipe.lost(options),
            toolchain=facts.get("toolchain", ""),
            key=entry.key,
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

    def _tree(self, order: BuildOrder) -> str:
        what = (order.sha, order.patches)
        if what not in self._trees:
            self._trees[what] = self._kernel_trees.tree(order.sha, order.patches)
        return self._trees[what]

    def _workspace(self) -> Path:
        """A folder on the cache's file system, so that a finished kernel is moved in by a rename."""
        parent = self.cache / "kernels"
        try:
            parent.mkdir(parents=True, exist_ok=True)
            return Path(tempfile.mkdtemp(prefix="building-", dir=parent))
        except OSError as error:
            raise disk_error(parent, error) from error

    def _toolchain_file(self, toolchain: str) -> Path:
        return self.cache / "builder" / f"{self.host}.{toolchain}.json"

    def _known_toolchain(self, recipe: Recipe) -> str | None:
        try:
            text = self._toolchain_file(recipe.manifest.toolchain).read_text(encoding="utf-8")
            return str(json.loads(text)["toolchain"])
        except (OSError, ValueError, KeyError):
            return None

    def _remember_toolchain(self, name: str, toolchain: str) -> None:
        target = self._toolchain_file(name)
        partial = target.with_suffix(f".{os.getpid()}")
        try:
            partial.write_text(json.dumps({"toolchain": toolchain}), encoding="utf-8")
            partial.replace(target)
        except OSError as error:
            raise disk_error(target, error) from error


class _Watch:
    """Asked by the running play whether to stop; uses the occasion to tell how far the compiler is.

    folder: the builder's, when its files can be read from here; whole: files of a build from nothing, 0 if
    no build has told yet.
    """

    def __init__(
        self, folder: Path | None, whole: int, progress: Progress, stop: Callable[[], bool] | None
    ) -> None:
        self._log = folder / "builder" / "work" / "tuxmake" / "build.log" if folder else None
        self._whole = f" (a whole kernel has {whole:,})" if whole else ""
        self._progress = progress
        self._stop = stop
        self._since = time.time()
        self._tell_at = time.monotonic() + _TELL_SECONDS
        self._told = 0

    def __call__(self) -> bool:
        if self._log is not None and time.monotonic() >= self._tell_at:
            self._tell_at = time.monotonic() + _TELL_SECONDS
            compiled = self._compiled(self._log)
            if compiled > self._told:
                self._told = compiled
                self._progress(f"compiling: {compiled:,} files so far{self._whole}")
        return self._stop is not None and self._stop()

    def _compiled(self, path: Path) -> int:
        try:
            if path.stat().st_mtime < self._since:  # the build before this one
                return 0
            return path.read_bytes().count(b"\n  CC ")
        except OSError:
            return 0


def _unpack(artefacts: Path, folder: Path) -> None:
    try:
        folder.mkdir()
        with tarfile.open(artefacts) as archive:
            if hasattr(tarfile, "data_filter"):
                archive.extractall(folder, filter="data")
            else:  # Debian 12's Python 3.11.2 is older than filters (3.11.4); the builder is trusted anyway
                archive.extractall(folder)  # noqa: S202
        artefacts.unlink()
    except (OSError, tarfile.TarError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise disk_error(folder, error) from error
        raise InfrastructureError(f"what the builder sent is not whole: {error}") from error
