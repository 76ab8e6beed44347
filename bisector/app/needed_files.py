"""Cached files that running or resumable bisections need."""

from __future__ import annotations

from dataclasses import dataclass

from bisector.model.records import Booted, Built
from bisector.model.stored_bisection import ENDED
from bisector.store_ports import Store


@dataclass(frozen=True, slots=True)
class NeededFiles:
    """Keys of kernels, checksums of guest images."""

    kernels: frozenset[str] = frozenset()
    images: frozenset[str] = frozenset()


def needed_files(store: Store) -> NeededFiles:
    """Return what the bisections of a store need that have not ended."""
    kernels, images = set(), set()
    for summary in store.list():
        if summary.status not in ENDED:
            for _, record in store.records(summary.id):
                if isinstance(record, Built) and record.kernel is not None:
                    kernels.add(record.kernel.key)
                elif isinstance(record, Booted):
                    images.add(record.image)
    return NeededFiles(frozenset(kernels - {""}), frozenset(images - {""}))
