"""Retention: ended bisections, and files that are unused for long and not needed, may be removed.

Nothing is removed that a bisection that runs or can be resumed needs: its records and files, the kernels it
has built, the guest images it has booted (an image that is built again is another one). Nor is a bisection
that an open alert, a night or a message refers to (`referring`). Of a cache folder
that several state folders share, only this one's bisections are known; the others' are protected by age.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bisector.adapters.system.disk_usage import disk_usage, half_removed, remove, used_at
from bisector.adapters.system.leftovers import leftovers_of_boots
from bisector.app import bisections
from bisector.app.artefacts.shared_files import shared_folder
from bisector.app.execution.following import Executors
from bisector.app.needed_files import NeededFiles, needed_files
from bisector.app.upkeep.referring import find_references
from bisector.app.wiring import Wiring
from bisector.engine.state_lock import find_holder
from bisector.errors import RecordsFull, RequestError
from bisector.model.stored_bisection import Summary

DAY_SECONDS = 86400.0
KEEP_DAYS = 90.0
"""Days that things are kept by default: longer than the nine weeks from one kernel release to the next."""

_CLEANING_SECONDS = 60.0
"""After so long no visit of a cancelled bisection is under way: twice what an executor gives them to end."""

Kind = Literal[
    "bisection", "results", "boot files", "kernel", "build log", "guest image", "graph", "artefact", "remains"
]
"""results: files of a bisection that is no longer there; boot files: temporary ones of a killed process;
graph: of a repository's range, read again when needed; artefact: in the folder that hosts share; remains: of
a removal or a transfer that was interrupted."""


@dataclass(frozen=True, slots=True)
class Removable:
    """Something that may be removed. name: an id or a file's name; used: seconds since the epoch."""

    kind: Kind
    name: str
    bytes: int
    used: float
    path: Path


def needs(wiring: Wiring) -> NeededFiles:
    """Return what must stay in the cache, and in the artefact store."""
    return needed_files(wiring.store) if wiring.has_store else NeededFiles()


def find_removable(wiring: Wiring, keep_days: float) -> list[Removable]:
    """Return what nobody has used for so many days and nobody needs. keep_days: at least one.

    What a process uses now it has used today, so a day protects what is not yet recorded.
    """
    before = wiring.clock.now() - keep_days * DAY_SECONDS
    shared = _of_the_shared_folder(wiring, before)
    everything = [*_of_bisections(wiring, before), *_of_the_cache(wiring, before), *shared]
    return sorted(everything, key=lambda item: item.used)


def to_remove(wiring: Wiring, wanted: Sequence[str]) -> list[Removable]:
    """Return the bisections of some ids, or beginnings of ids.

    Raises RequestError unless all have ended, and nothing that goes on refers to them.
    """
    from bisector.app.load_report import find_summary

    found = {one.id: one for one in (find_summary(wiring, identity) for identity in wanted)}
    users, references = _Users(wiring), find_references(wiring)
    for summary in found.values():
        if users.have(summary):
            ended = summary.status in bisections.ENDED
            raise RequestError(
                f"the bisection '{summary.id}' is running{': its last trial has not ended' if ended else ''}",
                cure="give the same command again in a minute"
                if ended
                else f"perfbisect cancel {summary.id}, and wait until its process has ended",
            )
        if summary.status not in bisections.ENDED:
            raise RequestError(
                f"the bisection '{summary.id}' has not ended ({summary.status}); it can be resumed",
                cure=f"perfbisect resume {summary.id}, or end it for good: perfbisect cancel {summary.id}",
            )
        reference = references.get(summary.id)
        if reference is not None and summary.status != bisections.REMOVING:
            raise RequestError(
                f"{reference.what} refers to the bisection '{summary.id}'", cure=reference.cure
            )
    return [_bisection(wiring, summary) for summary in found.values()]


def remove_one(wiring: Wiring, item: Removable) -> bool:
    """Remove something that was found; return whether it is gone. What was used meanwhile stays.

    Raises InfrastructureError.
    """
    if item.kind == "bisection":
        _begin_removal(wiring, item)
        remove(item.path)
        store = shared_folder(wiring)
        for path in store.boots_of(item.name) if store is not None else ():
            remove(path)
        wiring.store.remove(item.name)
        return True
    if not os.path.lexists(item.path) or used_at(item.path) > item.used:
        return False
    remove(item.path)
    return True


def _begin_removal(wiring: Wiring, item: Removable) -> None:
    """Mark a bisection as being removed, so that the next removal goes on if this process is killed.

    Raises InfrastructureError.
    """

    def mark() -> None:
        wiring.store.set_status(item.name, bisections.REMOVING)

    try:
        mark()
    except RecordsFull:  # removing its files first makes room to write the mark
        remove(item.path)
        mark()


def remove_all(wiring: Wiring, items: Sequence[Removable]) -> dict[str, Any]:
    """Remove what was found; return it ('items') and the bytes that are free again ('freed_bytes')."""
    removed: set[Removable] = set()
    try:
        for item in items:
            if remove_one(wiring, item):
                removed.add(item)
    finally:
        given_back = _give_back(wiring)
    return {"items": values(items, removed), "freed_bytes": sum(i.bytes for i in removed) + given_back}


def _give_back(wiring: Wiring) -> int:
    """Give the space of removed rows back; return how many bytes. On a full disk the next time does it."""
    try:
        return wiring.store.give_back() if wiring.has_store else 0
    except RecordsFull:  # what is removed is removed
        return 0


def values(items: Sequence[Removable], removed: Collection[Removable] = ()) -> list[dict[str, Any]]:
    """Return what was found as JSON values."""
    return [
        {
            "kind": item.kind,
            "name": item.name,
            "bytes": item.bytes,
            "used": item.used,
            "path": str(item.path),
            "removed": item in removed,
        }
        for item in items
    ]


class _Users:
    """Who works on bisections, or may still clean up after one that was cancelled."""

    def __init__(self, wiring: Wiring) -> None:
        self._here = find_holder(wiring.settings.state_dir)
        self._anywhere = Executors(wiring.settings.state_dir, wiring.shared_coordinator)
        self._now = wiring.clock.now()

    def have(self, summary: Summary) -> bool:
        """Return whether somebody has a bisection: a process of this host, or an executor's lease of it."""
        if self._anywhere.have_leased(summary.id):
            return True
        if self._here is None or not self._here.executes:
            return False
        fresh = summary.status == "cancelled" and self._now - summary.changed < _CLEANING_SECONDS
        return self._here.doing == summary.id or summary.status == "running" or fresh


def _summaries(wiring: Wiring) -> Sequence[Summary]:
    return wiring.store.list() if wiring.has_store else ()


def _bisection(wiring: Wiring, summary: Summary) -> Removable:
    folder = wiring.bisection_folder(summary.id)
    return Removable("bisection", summary.id, disk_usage(folder), summary.changed, folder)


def _of_bisections(wiring: Wiring, before: float) -> Iterator[Removable]:
    known = {summary.id: summary for summary in _summaries(wiring)}
    in_use = {summary.id for summary in filter(_Users(wiring).have, known.values())}
    going, references = set(), find_references(wiring)
    for summary in known.values():
        ended_long_ago = summary.status in bisections.ENDED and summary.changed < before
        old = ended_long_ago and summary.id not in references
        if summary.id not in in_use and (old or summary.status == bisections.REMOVING):
            going.add(summary.id)
            yield _bisection(wiring, summary)
    folder = wiring.settings.state_dir / "bisections"
    yield from _remains(folder)
    for path in _older(folder.glob("[!.]*"), before):
        if wiring.has_store and path.name not in known:  # without it, nobody knows whose they are
            yield _item("results", path)
    ended = {s.id for s in known.values() if s.status in bisections.ENDED} - going - in_use
    for name in sorted(ended):
        for path in _older(leftovers_of_boots(folder / name), before):
            yield _item("boot files", path)


def _of_the_cache(wiring: Wiring, before: float) -> Iterator[Removable]:
    from bisector.adapters.guest.rootfs import kept_images

    cache, needed = wiring.settings.cache_dir, needs(wiring)
    yield from _remains(cache / "kernels", cache / "images")
    yield from (_item("remains", path) for path in _older((cache / "artefacts").glob("*"), before))
    for entry in wiring.kernel_cache.entries():
        if entry.key not in needed.kernels:
            yield from (_item("kernel", path) for path in _older([entry.folder], before))
    yield from (_item("build log", path) for path in _older(wiring.kernel_cache.failed_logs(), before))
    for image in kept_images(cache):
        if image.checksum not in needed.images:
            yield from (_item("guest image", path) for path in _older([image.disk.parent], before))
    yield from (_item("graph", path) for path in _older((cache / "graphs").glob("[!.]*"), before))


def _of_the_shared_folder(wiring: Wiring, before: float) -> Iterator[Removable]:
    """Yield what no bisection of the database needs: others may have put it, who use the same database."""
    store = shared_folder(wiring)
    if store is None or not wiring.has_store:
        return
    needed, known = needs(wiring), {summary.id for summary in _summaries(wiring)}
    for kept in store.kept():
        key = kept.artefact.key
        if kept.used < before and key not in needed.kernels and key.partition("@")[0] not in known:
            yield Removable("artefact", str(kept.artefact), kept.bytes, kept.used, kept.path)


def _remains(*folders: Path) -> Iterator[Removable]:
    yield from (_item("remains", path) for path in half_removed(folders))


def _older(paths: Iterator[Path] | Sequence[Path], before: float) -> list[Path]:
    """Return what was used before a time: of a link, what it leads to; at once one that leads nowhere."""
    return [path for path in paths if used_at(path) < before]


def _item(kind: Kind, path: Path) -> Removable:
    return Removable(kind, path.name, disk_usage(path), used_at(path), path)
