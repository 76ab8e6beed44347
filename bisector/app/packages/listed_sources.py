"""The sources of an accepted request: commits, or listed kernels and how they are made bootable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.ports import Builder, Source
    from bisector.schemas.kernel.listed_kernel import ListedKernel
    from bisector.schemas.request import Accepted


def source_of(wiring: Wiring, accepted: Accepted) -> Source:
    """Return the repository of an accepted request, or its kernels. Raises as `Wiring.source`."""
    if not accepted.kernels:
        return wiring.source_of(accepted.request)
    from bisector.adapters.packages.listed_kernels import ListedKernels

    return ListedKernels(accepted.kernels)


def unpacker(wiring: Wiring, kernels: Sequence[ListedKernel], stop: Callable[[], bool]) -> Builder:
    """Return what unpacks kernels of a list, in its turn on this machine."""
    from bisector.adapters.machine.physical_hosts import HERE
    from bisector.adapters.packages.package_builder import PackageBuilder

    host = wiring.machine_lock((f"host-{HERE}",), "its turn on this machine", stop)
    return PackageBuilder(kernels, wiring.kernel_cache, in_turn=host.shared, stop=stop)
