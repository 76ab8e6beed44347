"""Whether a testbed has what a workload needs, by what the lab says of it.

What the lab does not say (the CPUs of a machine over SSH, the state of its disk) is checked when it boots.
"""

from __future__ import annotations

from dataclasses import dataclass

from bisector.errors import RequestError
from bisector.model.format import count
from bisector.schemas.lab import TestbedSpec
from bisector.schemas.workload.workload import Workload


@dataclass(frozen=True, slots=True)
class MissingResource:
    """What a testbed lacks, and what to do about it."""

    description: str
    cure: str


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
    """Raise RequestError naming everything that the testbed lacks for this workload."""
    found = missing_resources(workload, testbed)
    if found:
        raise RequestError(
            f"the workload '{workload.name}' cannot run on the testbed '{testbed.name}'",
            details="\n".join(f"it needs {missing.description}" for missing in found),
            cure="; ".join(missing.cure for missing in found),
        )
