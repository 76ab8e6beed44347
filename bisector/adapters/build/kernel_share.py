"""Kernels that hosts build for each other: taken from the artefact store, else built here and put there.

Of several hosts that want one kernel at once, one builds it and the others wait: it has the lease 'kernel
KEY' until the kernel is in the store. Where the store is away, every host builds its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bisector.adapters.artefacts.exchange import Exchange
from bisector.adapters.build.kernel_cache import CachedKernel, KernelCache
from bisector.errors import InfrastructureError, Interrupted
from bisector.model.artefacts import Artefact
from bisector.model.leases import Lease
from bisector.ports import Progress
from bisector.store_ports import Coordinator

_POLL_SECONDS = 1.0
"""How soon the end of another host's build is noticed, which takes a minute or more."""


@dataclass(slots=True)
class KernelShare:
    """The kernels of one cache, given to and taken from other hosts.

    executor: whose leases tell other hosts what is built here; '' while there is none.
    """

    cache: KernelCache
    exchange: Exchange
    coordinator: Coordinator | None = None
    executor: str = ""
    _offered: set[str] = field(default_factory=set, init=False, repr=False)

    def offer(self, entry: CachedKernel, then: Callable[[], object] | None = None) -> None:
        """Give a kernel to other hosts, unless that was done before."""
        if entry.key not in self._offered or then is not None:
            self._offered.add(entry.key)
            self.exchange.offer(Artefact("kernel", entry.key), entry.folder, then)

    def obtain(
        self, key: str, build: Callable[[], CachedKernel], stop: Callable[[], bool], progress: Progress
    ) -> tuple[CachedKernel, float | None]:
        """Return a kernel that is not in the cache; seconds it took to fetch, None where it was built here.

        build: makes it here, and raises what is wrong with it. Raises Interrupted where told to stop.
        """
        lease, told = None, False
        try:
            while True:
                started = time.monotonic()
                entry = self._fetch(key, progress)
                if entry is not None:
                    return entry, time.monotonic() - started
                if lease is not None or self.coordinator is None or not self.executor:
                    break
                lease = self._acquire(self.coordinator, key)
                if lease is None:
                    if not told:
                        progress("another host builds this kernel")
                        told = True
                    if stop():
                        raise Interrupted("stopped while another host built the kernel")
                    time.sleep(_POLL_SECONDS)
            entry = build()
            self.offer(entry, partial(self._release, lease))
            lease = None
            return entry, None
        finally:
            self._release(lease)

    def _fetch(self, key: str, progress: Progress) -> CachedKernel | None:
        def take(folder: Path) -> None:
            progress("taking the kernel from the artefact store")
            found.append(self.cache.receive(key, folder))

        found: list[CachedKernel] = []
        self.exchange.fetch(Artefact("kernel", key), self.cache.folder, take)
        self._offered.update(entry.key for entry in found)
        return found[0] if found else None

    def _acquire(self, coordinator: Coordinator, key: str) -> Lease | None:
        return coordinator.acquire(f"kernel {key}", self.executor)

    def _release(self, lease: Lease | None) -> None:
        if lease is not None and self.coordinator is not None:
            with suppress(InfrastructureError):  # else it ends when our heartbeat does
                self.coordinator.release(lease)
