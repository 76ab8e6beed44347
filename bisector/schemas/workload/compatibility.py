"""Whether a testbed and a recipe's kernels have what a workload needs, by what lab and recipe say of them.

What the lab does not say (the CPUs of a machine over SSH, the state of its disk) is checked when it boots.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bisector.errors import RequestError
from bisector.model.format import count
from bisector.schemas.kernel.recipe import Recipe
from bisector.schemas.lab import TestbedSpec
from bisector.schemas.workload.workload import Workload


@dataclass(frozen=True, slots=True)
class MissingResource:
    """What a testbed lacks, and what to do about it."""

    description: str
    cure: str


def boots_kernels(testbed: TestbedSpec) -> bool:
    """Return whether a testbed can run another kernel than its own."""
    return testbed.variables.kind != "local"


def missing_resources(workload: Workload, testbed: TestbedSpec) -> tuple[MissingResource, ...]:
    """Return what the workload needs and the testbed does not have."""
    needed, has = workload.manifest.requires, testbed.variables
    found = []
    if has.kind == "libvirt" and has.cpus < needed.cpus:
        found.append(
            MissingResource(
                f"{count(needed.cpus, 'CPU')}: it has {has.cpus}",
                f"set perfbisect_cpus: {needed.cpus} in the inventory",
            )
        )
    if needed.block_device and has.kind != "libvirt" and not has.block_device:
        found.append(
            MissingResource(
                f"a block device of {needed.block_device} that it may overwrite: the inventory names none",
                "set perfbisect_block_device: /dev/disk/by-id/... for it; what is on it will be lost",
            )
        )
    return tuple(found)


def check_testbed(workload: Workload, testbed: TestbedSpec) -> None:
    """Raise RequestError for one that boots no kernels, or naming all that it lacks for this workload."""
    if not boots_kernels(testbed):
        raise RequestError(
            f"the testbed '{testbed.name}' is this machine, and boots no kernels",
            details="its perfbisect_kind is local",
            cure="name another one with --testbed, such as a guest (perfbisect_kind: libvirt) or a machine "
            "over SSH; 'perfbisect workload run NAME' without --rev runs one on this machine",
        )
    found = missing_resources(workload, testbed)
    if found:
        raise RequestError(
            f"the workload '{workload.name}' cannot run on the testbed '{testbed.name}'",
            details="\n".join(f"it needs {missing.description}" for missing in found),
            cure="; ".join(missing.cure for missing in found),
        )


def recipe_serves(workload: Workload, recipe: Recipe, testbeds: Sequence[TestbedSpec]) -> bool:
    """Return whether a recipe may be chosen for a workload when none is named.

    A recipe for an initramfs is for guests alone, and brings no perf to a workload that is watched by it.
    """
    if recipe.manifest.userspace == "initramfs" and (
        workload.manifest.packages() or any(one.variables.kind != "libvirt" for one in testbeds)
    ):
        return False
    return not [*_unserved(workload, recipe)]


def check_recipe(workload: Workload, recipe: Recipe, *, named: bool = True) -> None:
    """Raise RequestError naming everything that the workload needs and kernels of the recipe do not have.

    named: whether somebody asked for this recipe; else none for these commits would serve.
    """
    found = [*_unserved(workload, recipe)]
    if found:
        other = "a workload with programs of its own" if workload.script else "another workload"
        raise RequestError(
            f"the workload '{workload.name}' cannot run on kernels of the recipe '{recipe.name}'",
            details="\n".join(found),
            cure="leave out --recipe, so that one is chosen that serves it; if none does for commits of this "
            "age, choose another workload"
            if named
            else f"no recipe for commits of this age serves it: choose {other}; 'perfbisect workload list' "
            "shows those that are here",
        )


def _unserved(workload: Workload, recipe: Recipe) -> Iterator[str]:
    """Yield what the workload needs and kernels of the recipe do not have, each in words."""
    manifest, userspace = workload.manifest, recipe.manifest.userspace
    if userspace not in manifest.userspaces:
        told = "a command of --run" if workload.script else "'userspaces' in its manifest"
        yield f"it runs on the user space {' or '.join(manifest.userspaces)} ({told}); theirs is {userspace}"
    if userspace == "initramfs" and manifest.requires.packages:
        yield f"it needs Debian packages ({', '.join(manifest.requires.packages)}); an initramfs has none"
    has_disk = recipe.manifest.rest == "default" or any(o.name == "VIRTIO_BLK" for o in recipe.options)
    if userspace == "initramfs" and manifest.requires.block_device and not has_disk:
        yield f"it needs a block device of {manifest.requires.block_device}; they have no driver for one"
