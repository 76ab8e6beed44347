"""Exchange of files with other hosts through an artefact store.

Nothing here ends a bisection: a store that is away, full or damaged is told, and things are made here.
"""

from __future__ import annotations

import itertools
import queue
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.system.archive import ArchiveError, pack_tar, unpack_tar
from bisector.adapters.system.files import publish_folder, writing
from bisector.adapters.system.leftovers import leftovers_of, make_temporary_folder
from bisector.errors import DamagedArtefact, InfrastructureError, PerfbisectError
from bisector.model.artefacts import Artefact
from bisector.ports import Progress
from bisector.store_ports import ArtefactStore

AWAY_SECONDS = 60.0
"""How long the store is not asked after a failure, since each try may take its whole timeout. A minute is
chosen."""

TEMPORARY_PREFIX = "artefact-"


@dataclass(slots=True)
class _Offer:
    """A folder to be put into the store. then: called once, whether that worked or not."""

    artefact: Artefact
    folder: Path
    then: Callable[[], object] | None


class Exchange:
    """Folders as artefacts. What is offered is put by a thread; close it, so that it may finish."""

    def __init__(self, store: ArtefactStore, work: Path, note: Progress) -> None:
        """work: for what is packed; note: called with a message when something goes wrong."""
        self._store, self._work, self._note = store, work, note
        # Kernels come first, since another host may wait for one; None, the end, comes last.
        self._offers: queue.PriorityQueue[tuple[int, int, _Offer | None]] = queue.PriorityQueue()
        self._count = itertools.count()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._away_until = float("-inf")
        self._noted = ""

    @property
    def store(self) -> ArtefactStore:
        """The store itself, which unlike this class raises what is wrong."""
        return self._store

    def fetch(self, artefact: Artefact, beside: Path, take: Callable[[Path], object]) -> bool:
        """Give `take` a folder with the content of an artefact; return whether there was one.

        beside: where that folder is made; take: may move it away. What is damaged counts as not there, and so
        does everything while the store is away.
        """
        if time.monotonic() < self._away_until:
            return False
        try:
            if not self._store.has(artefact):
                return False
            work = make_workspace(beside)
            try:
                archive, folder = work / "archive", work / "content"
                if not self._store.get(artefact, archive):
                    return False
                folder.mkdir()
                try:
                    unpack_tar(archive, folder, max_bytes=artefact.max_bytes)
                    archive.unlink()
                    take(folder)
                except (ArchiveError, DamagedArtefact) as error:  # whoever put it made something else
                    self._store.set_aside(artefact)
                    raise DamagedArtefact(
                        f"the {artefact} of the artefact store was set aside: {error.message}",
                        details=error.details,
                    ) from error
            finally:
                shutil.rmtree(work, ignore_errors=True)
        except PerfbisectError as error:
            self._tell(error)
            return False
        return True

    def fetch_folder(self, artefact: Artefact, target: Path) -> bool:
        """Make a folder with the content of an artefact; return whether there was one.

        Temporary files are two folders above, where a glob for its neighbours does not find them.
        """

        def take(folder: Path) -> None:
            with writing(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                try:
                    publish_folder(folder, target)
                except OSError:
                    if not target.is_dir():  # else another process has fetched it meanwhile
                        raise

        return self.fetch(artefact, target.parent.parent, take)

    def offer(self, artefact: Artefact, folder: Path, then: Callable[[], object] | None = None) -> None:
        """Have a finished folder put, unless it is empty or in the store already; return at once.

        then: called from another thread when it was put, or cannot be. Where the store is away it is tried
        again; what could not be put until `close` stays with this host.
        """
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._put_offers, daemon=True, name="artefacts")
                self._thread.start()
        self._queue(_Offer(artefact, folder, then))

    def close(self, seconds: float) -> None:
        """Put what was offered, for so long at most."""
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._queue(None)
            thread.join(seconds)

    def _queue(self, offer: _Offer | None) -> None:
        turn = 2 if offer is None else int(offer.artefact.kind != "kernel")
        self._offers.put((turn, next(self._count), offer))

    def _put_offers(self) -> None:
        failed: list[_Offer] = []
        while True:
            try:
                _, _, offer = self._offers.get(timeout=AWAY_SECONDS if failed else None)
            except queue.Empty:
                for again in failed:
                    self._queue(again)
                failed = []
                continue
            if offer is None:
                return
            if not self._put(offer):
                failed.append(offer)
            if offer.then is not None:
                offer.then()
                offer.then = None

    def _put(self, offer: _Offer) -> bool:
        """Put a folder; return whether nothing is left to do."""
        if time.monotonic() < self._away_until:
            return False
        try:
            if not any(offer.folder.glob("*")) or self._store.has(offer.artefact):
                return True
            work = make_workspace(self._work)
            try:
                archive = work / "archive"
                with writing(archive):
                    # A kernel's image and modules are compressed already.
                    compressed = offer.artefact.kind != "kernel"
                    pack_tar(
                        offer.folder, archive, left_out=leftovers_of(offer.folder), compressed=compressed
                    )
                self._store.put(offer.artefact, archive)
            finally:
                shutil.rmtree(work, ignore_errors=True)
        except InfrastructureError as error:
            self._tell(error)
            return False
        self._noted = ""
        return True

    def _tell(self, error: PerfbisectError) -> None:
        """Report what went wrong, each cause once in a row; leave a store that is away alone for a while."""
        if not isinstance(error, DamagedArtefact):
            self._away_until = time.monotonic() + AWAY_SECONDS
        text = "\n  ".join(filter(None, (f"warning: {error.message}", error.details, error.cure)))
        if text != self._noted:
            self._noted = text
            with suppress(Exception):  # whoever is told must not end the thread
                self._note(text)


def make_workspace(parent: Path) -> Path:
    """Make a temporary folder, which the caller removes. Raises InfrastructureError."""
    with writing(parent):
        parent.mkdir(parents=True, exist_ok=True)
        return make_temporary_folder(TEMPORARY_PREFIX, parent)
