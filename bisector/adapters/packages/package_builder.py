"""Kernels of a list as a Builder: nothing is compiled, packages are unpacked into the kernel cache."""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from bisector.adapters.build.kernel_cache import CachedKernel, KernelCache, kernel_key
from bisector.adapters.packages import kernel_files
from bisector.adapters.system.archive import read_compressed
from bisector.adapters.system.files import write_file
from bisector.errors import InfrastructureError, RequestError
from bisector.model.commit_graph import short_name
from bisector.ports import BuildOrder, Kernel, Progress
from bisector.schemas.kernel.listed_kernel import ListedKernel, content_sum
from bisector.schemas.kernel.recipe import load_recipe

_PLAN = "package, as it is, with System.map"
"""Stands for how a kernel is built in the keys of the cache; another one when other files are kept."""

_COMPILER = re.compile(r'^CONFIG_CC_VERSION_TEXT="(?P<text>[^"\n]{1,200})"$', re.MULTILINE)

_CONFIG_BYTES_MAX = 4 << 20
"""A .config has 300 KiB at most."""


class PackageBuilder:
    """ports.Builder for the kernels of a list. One at a time is unpacked, on this machine.

    in_turn: holds this machine while nobody measures there. stop: asked while another process is waited for.
    """

    def __init__(
        self,
        kernels: Sequence[ListedKernel],
        cache: KernelCache,
        *,
        in_turn: Callable[[Progress], AbstractContextManager[object]] = lambda _: nullcontext(),
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._kernels = {kernel.id: kernel for kernel in kernels}
        self._cache, self._in_turn, self._stop = cache, in_turn, stop

    def build(self, order: BuildOrder, progress: Progress) -> Kernel:
        """Unpack a kernel, or take it from the cache.

        Raises BuildFailed for a damaged package, InfrastructureError for files that are gone or not those
        that were listed, RequestError for what packages do not have: layouts, patches.
        """
        started = time.monotonic()
        listed = self._listed(order)
        entry = self._cache.get(_key(listed))
        if entry is not None:
            return _kernel(order, listed, entry, time.monotonic() - started, cached=True)
        with self._cache.making(_key(listed), progress, self._stop), self._in_turn(progress):
            entry = self._cache.get(_key(listed)) or self._unpack(order, listed, progress)
        return _kernel(order, listed, entry, time.monotonic() - started, cached=False)

    def cached(self, order: BuildOrder) -> Kernel | None:
        """Return the kernel if it is in the cache already."""
        listed = self._listed(order)
        entry = self._cache.get(_key(listed))
        return None if entry is None else _kernel(order, listed, entry, 0.0, cached=True)

    def _listed(self, order: BuildOrder) -> ListedKernel:
        if order.layout or order.patches or order.fixes:
            raise RequestError(
                "a kernel from a package has no other layout, and takes no patch",
                cure="bisect commits for that",
            )
        return self._kernels[order.sha]

    def _unpack(self, order: BuildOrder, listed: ListedKernel, progress: Progress) -> CachedKernel:
        name, files = short_name(listed.id), [Path(file) for file in listed.files]
        for file, known in zip(files, listed.sums, strict=True):
            if not file.exists() or kernel_files.files_sum(file) != known:
                happened = "has changed" if file.exists() else "is gone"
                raise InfrastructureError(
                    f"{file}, the kernel {name}, {happened} since it was listed",
                    cure="put it back as it was, and 'perfbisect resume'; or leave the kernel out: "
                    f"'perfbisect mark ID {name} skip'",
                )
        progress(f"unpacking {', '.join(file.name for file in files)}")
        work = self._cache.make_workspace()
        try:
            kernel = kernel_files.unpack_kernel(files, work)
            image, modules = kernel_files.files_sum(kernel / "image"), kernel_files.modules_sum(kernel)
            config = read_compressed(kernel / "config", _CONFIG_BYTES_MAX).decode(errors="replace")
            compiler = _COMPILER.search(config)
            log = [f"{total}  {file}" for file, total in zip(listed.files, listed.sums, strict=True)]
            write_file(kernel / "build.log", "".join(f"{line}\n" for line in log).encode())
            facts = {
                "status": "ok",
                "release": listed.release,
                "build_id": "",
                "binary": hashlib.sha256(f"{image}\n{modules}".encode()).hexdigest(),
                "image": str((kernel / "image").stat().st_size),
                "toolchain": compiler["text"] if compiler else "",
                "sha": listed.id,
                "recipe": order.recipe,
                "layout": "0",
            }
            return self._cache.put(_key(listed), kernel, facts)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _key(listed: ListedKernel) -> str:
    return kernel_key(content_sum(listed.sums), _PLAN, "")


def _kernel(
    order: BuildOrder, listed: ListedKernel, entry: CachedKernel, seconds: float, *, cached: bool
) -> Kernel:
    recipe, facts = load_recipe(order.recipe).manifest, entry.facts
    return Kernel(
        sha=order.sha,
        recipe=order.recipe,
        binary=facts["binary"],
        image=entry.image,
        config=entry.config,
        log=entry.log,
        release=facts["release"],
        build_id=facts["build_id"],
        version=listed.built,
        seconds=seconds,
        cached=cached,
        sizes={"image": int(facts["image"])},
        options=entry.options(),
        toolchain=facts.get("toolchain", ""),
        # Its own for each: kernels of a distribution may differ by compiler, which is a finding.
        compiler=f"that of {listed.package}",
        key=entry.key,
        userspace=recipe.userspace,
        arch=recipe.arch,
        modules=entry.modules,
        load=recipe.load,
    )
