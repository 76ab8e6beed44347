"""Files that hosts share while they execute bisections: kernels, and the output of boots."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.errors import PerfbisectError
from bisector.model.artefacts import Artefact, boot_artefact, is_boot_id
from bisector.model.records import Left, RunFailed

if TYPE_CHECKING:
    from bisector.adapters.artefacts.folder_artefacts import FolderArtefacts
    from bisector.adapters.build.kernel_share import KernelShare
    from bisector.app.wiring import Wiring

FINISHING_SECONDS = 30.0
"""How long a process that ends goes on putting files: a kernel takes a second, some GiB of modules longer."""

FACTS = ("shared", "facts")
"""In a bisection's folder: what `keep_facts` gives. Removed with the artefacts of its boots."""

_RECENT_SECONDS = 7 * 86400.0
"""A worker that starts offers the files of boots again if their bisection changed within this time, so that
a host that was away over a weekend loses nothing."""


def kernel_share(wiring: Wiring) -> KernelShare | None:
    """Return how kernels are shared with other hosts; None where the settings name no artefact store."""
    from bisector.adapters.build.kernel_share import KernelShare

    if wiring.exchange is None:
        return None
    return KernelShare(wiring.kernel_cache, wiring.exchange, wiring.shared_coordinator)


def require_store(wiring: Wiring) -> None:
    """Raise InfrastructureError where the artefact store of the settings cannot be used from the start."""
    if wiring.exchange is not None:
        wiring.exchange.store.check()


def make_workspace(wiring: Wiring) -> Path:
    """Make a folder for an artefact, which the caller removes; those of killed processes are removed.

    Raises InfrastructureError.
    """
    from bisector.adapters.artefacts import exchange
    from bisector.adapters.system.leftovers import remove_leftovers

    folder = wiring.settings.cache_dir / "artefacts"
    remove_leftovers(exchange.TEMPORARY_PREFIX, folder)
    return exchange.make_workspace(folder)


def shared_folder(wiring: Wiring) -> FolderArtefacts | None:
    """Return the folder that hosts share, where this one has mounted it."""
    from bisector.adapters.artefacts.folder_artefacts import FolderArtefacts

    store = wiring.exchange.store if wiring.exchange is not None else None
    return store if isinstance(store, FolderArtefacts) and store.root.is_dir() else None


def lease_as(share: KernelShare | None, executor: str) -> None:
    """Let other hosts know by this executor's leases which kernels are built here."""
    if share is not None:
        share.executor = executor


def keep_boot(wiring: Wiring, folder: Path) -> None:
    """Give other hosts what a boot has left; at once return."""
    if wiring.exchange is not None:
        wiring.exchange.offer(boot_artefact(folder.parent.parent.name, folder.name), folder)


def keep_facts(wiring: Wiring, bisection: str, *files: str) -> None:
    """Give other hosts files of the folder of a bisection that has ended, which their reports need."""
    folder = wiring.bisection_folder(bisection)
    facts = folder.joinpath(*FACTS)
    if wiring.exchange is not None and not facts.exists():
        facts.mkdir(parents=True)
        for name in files:
            if (folder / name).exists():
                shutil.copyfile(folder / name, facts / name)
        wiring.exchange.offer(_facts_artefact(bisection), facts)


def fetch_facts(wiring: Wiring, bisection: str) -> None:
    """Fetch what another host gave by `keep_facts`, unless it is here or cannot be had."""
    facts = wiring.bisection_folder(bisection).joinpath(*FACTS)
    if wiring.exchange is not None and not facts.exists():
        wiring.exchange.fetch_folder(_facts_artefact(bisection), facts)


def _facts_artefact(bisection: str) -> Artefact:
    return boot_artefact(bisection, "facts")


def keep_earlier_boots(wiring: Wiring) -> None:
    """Give other hosts what earlier processes here could not: boots of bisections that changed lately.

    A bisection for which that fails is reported and left out: the process can work without it.
    """
    if wiring.exchange is None:
        return
    since = wiring.clock.now() - _RECENT_SECONDS
    for summary in wiring.store.list():
        if summary.changed >= since:
            try:
                _keep_boots_of(wiring, summary.id)
            except (PerfbisectError, OSError, ValueError) as error:
                what = error.message if isinstance(error, PerfbisectError) else str(error)
                wiring.note(f"warning: boots of '{summary.id}' are not given to other hosts: {what}")


def _keep_boots_of(wiring: Wiring, bisection: str) -> None:
    boots = wiring.bisection_folder(bisection) / "boots"
    if not boots.is_dir():
        return
    for _, record in wiring.store.records(bisection):
        if not isinstance(record, Left | RunFailed):
            continue
        # Earlier versions imported archives without checking ids, which become part of a path here.
        if is_boot_id(record.boot) and (boots / record.boot).is_dir():
            keep_boot(wiring, boots / record.boot)


def finish(wiring: Wiring) -> None:
    """Finish putting what was offered, before the process ends."""
    if wiring.exchange is not None:
        wiring.exchange.close(FINISHING_SECONDS)
