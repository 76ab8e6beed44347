"""Whether everything that a bisection needs is here, asked before its first kernel is compiled.

What a workload asks of a testbed and what a request says wrong is refused by `accept`. This is about the
machines: programs, libvirt, the guest image, disk, and the compilers for the whole range on every builder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.app.accept import recipe_for, workload_of
from bisector.app.artefacts import shared_files
from bisector.app.packages.accept_kernels import RECIPE
from bisector.errors import InfrastructureError, PerfbisectError, SourceFailed
from bisector.model.format import count

if TYPE_CHECKING:
    from bisector.adapters.system.host_requirements import Check
    from bisector.app.wiring import Wiring
    from bisector.schemas.kernel.recipe import RecipeManifest
    from bisector.schemas.kernel.release import Release
    from bisector.schemas.kernel.toolchain import Toolchain
    from bisector.schemas.request import Accepted, Request
    from bisector.schemas.workload.workload import Workload

_FIRST_BUILD_GIB, _FURTHER_BUILD_GIB = 3, 1
"""Room for a kernel tree with its objects (2.5 GiB), and for one more kernel where those are there."""

_OF_DISK_GUESTS = ("mmdebstrap", "mke2fs", "ssh-keygen", "guest image", "a free port on loopback")
"""Checks of what only guests with a distribution's user space need."""

_OF_OTHER_CHECKS = ("qemu-system-x86_64", "musl-gcc")
"""Checks that the recipe's architecture decides (`Machine`): its emulator, and its compiler of programs."""


def require_ready(wiring: Wiring, request: Request) -> None:
    """Raise InfrastructureError naming all that is missing, each with what mends it."""
    _require(list(lacking(wiring, request)), "this bisection")


def require_guests(wiring: Wiring, workload: Workload, testbed: str, recipe: str, what: str) -> None:
    """Raise InfrastructureError as `require_ready`, for what a boot outside of a bisection needs of guests.

    A builder says itself at once what it lacks; a guest would, once the kernel is compiled. what: for errors.
    """
    from bisector.schemas.kernel.recipe import load_recipe

    _require(list(_missing_here(wiring, workload, [testbed], load_recipe(recipe).manifest, set())), what)


def _require(found: list[Check], what: str) -> None:
    if len(found) == 1:
        raise InfrastructureError(f"{found[0].name}: {found[0].wrong}", cure=found[0].cure)
    if found:
        raise InfrastructureError(
            f"{count(len(found), 'thing')} that {what} needs are missing; nothing was built",
            details="\n".join(f"{one.name}: {one.wrong}\n  {one.cure}" for one in found),
            cure="do what stands below each of them, then give the same command again",
        )


def lacking(wiring: Wiring, request: Request) -> Iterator[Check]:
    """Yield what is missing for a request; what only makes things worse is left to `perfbisect doctor`."""
    from bisector.adapters.machine.physical_hosts import HERE, host_names
    from bisector.adapters.system import host_requirements as host
    from bisector.schemas.kernel.recipe import load_recipe, with_fragments

    lab, workload = wiring.lab, workload_of(request)
    names = request.testbeds or (lab.testbeds[0].name,)
    trees, ends = wiring.trees(request.repo), list[str]()
    chosen = RECIPE
    if not request.kernels:
        source = wiring.source_of(request)
        ends = [source.resolve(rev) for rev in (request.good, request.bad)]
        asked = with_fragments(request.recipe, workload.manifest.requires.fragments)
        chosen = recipe_for(trees, asked, *ends, measures=(wiring, workload, names))
    recipe = load_recipe(chosen).manifest
    needed = set()
    here = any(f"host-{HERE}" in host_names(lab, builder) for builder in lab.builders)
    if here and not request.kernels:
        needed.add(host.BUILDING)
    yield from _missing_here(wiring, workload, names, recipe, needed)
    try:
        shared_files.require_store(wiring)
    except InfrastructureError as error:
        yield _check("artefact store", error, "kernels of other hosts")
    if request.kernels:
        return
    try:
        releases = sorted(trees.release(sha) for sha in ends)
    except SourceFailed:  # a Makefile that names no release; the build will report it
        return
    yield from _missing_compilers(wiring, request, _toolchains(recipe, releases))


def _missing_here(
    wiring: Wiring, workload: Workload, names: Sequence[str], recipe: RecipeManifest, needed: set[str]
) -> Iterator[Check]:
    """Yield what this machine lacks for some purposes (`needed`), and for guests if a testbed is one."""
    from bisector.adapters.system import host_requirements as host

    cache = wiring.settings.cache_dir
    beds = [wiring.lab.testbed(name).variables for name in names]
    guests = any(one.kind == "libvirt" and not one.libvirt_uri for one in beds)  # elsewhere: 'lab check'
    wanted = needed | ({host.GUESTS} if guests else set())
    room = _FURTHER_BUILD_GIB if (cache / "builder" / "source").exists() else _FIRST_BUILD_GIB
    checks = host.checks(cache, room)
    if guests and host.has_libvirt():
        from bisector.adapters.guest.preflight import guest_checks

        checks += guest_checks(cache, _silent, shared=wiring.settings.artefacts is not None)
    unneeded = {*_OF_OTHER_CHECKS, *(_OF_DISK_GUESTS if recipe.userspace == "initramfs" else ())}
    for check in checks:
        if not check.ok and not check.optional and check.needed in wanted and check.name not in unneeded:
            yield check
    if guests:
        emulated = any(wiring.testbed(name).clock == "instructions" for name in names)
        counted = emulated and workload.needed_counters()
        yield from _missing_emulation(recipe.arch, cache if counted else None)


def _missing_emulation(arch: str, counters: Path | None) -> Iterator[Check]:
    """Yield what guests of an architecture lack: the emulator, a compiler for their programs.

    counters: the cache for what counts in them, where a metric that decides is counted.
    """
    from bisector.adapters.guest.counting.counting_plugin import counting_plugin
    from bisector.adapters.system.architectures import machine_for
    from bisector.adapters.system.host_requirements import GUESTS

    try:
        machine = machine_for(arch)
    except InfrastructureError as error:
        yield _check(f"{arch} guests", error, GUESTS)
        return
    needed: list[tuple[str, Callable[[], object]]] = [
        (machine.emulator, machine.require_emulator),
        ("static programs", machine.compiler),
    ]
    if counters is not None:
        needed.append(("counters", partial(counting_plugin, counters, machine)))
    for name, ask in needed:
        try:
            ask()
        except InfrastructureError as error:
            yield _check(name, error, GUESTS)


def left_out(wiring: Wiring, accepted: Accepted) -> list[str]:
    """Return what is not counted beside the deciding metric, with the reason; empty where all can be."""
    from bisector.adapters.guest.counting.counting_plugin import counting_plugin
    from bisector.adapters.system.architectures import machine_for
    from bisector.schemas.kernel.recipe import load_recipe

    workload = workload_of(accepted.request)
    needed = workload.needed_counters()
    names = [name for name in workload.manifest.counters if name not in needed]
    why = ""
    if accepted.clock != "instructions":
        why = "only an emulated guest (clock 'instructions') counts"
    elif needed:  # readiness has asked
        return []
    elif names or workload.manifest.monitors.counters is not None:
        names = names or ["counters"]
        try:
            arch = load_recipe(accepted.request.recipe).manifest.arch
            counting_plugin(wiring.settings.cache_dir, machine_for(arch))
        except InfrastructureError as error:
            why = error.message
    return [f"left out, because {why}: {', '.join(names)}"] if why and names else []


def _toolchains(recipe: RecipeManifest, releases: list[Release]) -> list[Toolchain]:
    """Return the rows of the recipe's toolchain that some release of the range needs, each compiler once."""
    from bisector.schemas.kernel.toolchain import load_toolchains

    rows = {
        row.identity: row
        for row in load_toolchains().toolchain
        if row.name == recipe.toolchain and row.start <= releases[-1] and releases[0] < row.end
    }
    return list(rows.values())


def _missing_compilers(wiring: Wiring, request: Request, rows: list[Toolchain]) -> Iterator[Check]:
    """Yield what builders lack for the toolchains; a builder once found to have one is not asked again."""
    from bisector.adapters.build.toolchain_notes import read_note
    from bisector.adapters.system.host_requirements import BUILDING

    for spec in wiring.lab.builders:
        builder = wiring.builder(request.repo, spec.name)
        for row in rows:
            if read_note(builder.cache, builder.system, row) is None:
                try:
                    builder.probe(row, _silent)
                except PerfbisectError as error:
                    yield _check(f"builder '{spec.name}'", error, BUILDING)


def _silent(text: str) -> None:
    """Ignore a probe's progress: it takes seconds, and only its outcome matters."""


def _check(name: str, error: PerfbisectError, needed: str) -> Check:
    """Return a failed check for an error that says what is missing."""
    from bisector.adapters.system.host_requirements import Check

    details = f" ({error.details})" if error.details else ""
    return Check(name, wrong=f"{error.message}{details}", cure=error.cure, needed=needed)
