"""Bisections as archives: to keep one, to hand it to others, to go on with it on another machine."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bisector import __version__
from bisector.adapters.store.state_folder import prepare_state_folder
from bisector.adapters.system.archive import ArchiveError, anonymous, regular_files, unpack_tar
from bisector.adapters.system.files import (
    exclusive_lock,
    os_errors_reported,
    publish_file,
    publish_folder,
    writing,
)
from bisector.adapters.system.leftovers import leftovers_of_boots, make_temporary_folder, remove_leftovers
from bisector.app.artefacts.local_files import fetch_boots
from bisector.app.execution.current_status import is_executed
from bisector.app.output_file import os_errors_of
from bisector.errors import InfrastructureError, RequestError
from bisector.model.decisions import Decision
from bisector.model.records import Record
from bisector.model.stored_bisection import ENDED, IMPORTED, Action, Stored, Summary
from bisector.ports import Progress
from bisector.schemas.archive import exported
from bisector.schemas.documents.document import is_file, shown_path, why_no_file
from bisector.schemas.request import read_accepted
from bisector.store_ports import Store

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring

MAX_BYTES = 1 << 36
"""Most bytes of files in one archive: 64 GiB hold 8,000 consoles of boots and outputs of runs, as at most
8 MiB are kept of each."""
_PREFIX, _EXPORT_PREFIX = "import-", "perfbisect-export-"


def export_bisection(wiring: Wiring, stored: Stored, to: Path, progress: Progress) -> int:
    """Write a bisection with all its files into a .tar.gz; return how many files.

    Raises RequestError if it runs, or the file cannot be written; InfrastructureError for a full disk.
    """
    if is_executed(wiring, stored):
        raise RequestError(
            f"the bisection '{stored.id}' is running",
            cure="stop it with Ctrl-C, export it, and 'perfbisect resume' goes on",
        )
    read_accepted(stored.request)  # nobody could import it
    records = wiring.store.records(stored.id)
    fetch_boots(wiring, stored.id, records)
    rows = [*records, *wiring.store.decisions(stored.id)]
    events = [event for _, event in sorted(rows, key=lambda row: row[0])]
    source = wiring.bisection_folder(stored.id)
    files = list(regular_files(source, set(leftovers_of_boots(source))))
    temporary = Path(tempfile.gettempdir())
    refused = partial(
        os_errors_reported, f"cannot write into {temporary}", "free some space there, or set TMPDIR"
    )
    remove_leftovers(_EXPORT_PREFIX)
    with refused():
        documents = make_temporary_folder(_EXPORT_PREFIX)
    try:
        with refused():
            exported.write(documents, stored, events, __version__)
        with archive_to(to) as draft, tarfile.open(draft, "w:gz") as archive:
            for name in (exported.HEAD, exported.GRAPH, exported.EVENTS):
                archive.add(documents / name, name, filter=anonymous)
            for number, path in enumerate(files, start=1):
                progress(f"file {number} of {len(files)}")
                inside = f"{exported.FILES}/{path.relative_to(source)}"
                archive.add(path, inside, recursive=False, filter=anonymous)
    finally:
        shutil.rmtree(documents, ignore_errors=True)
    return len(files)


def default_archive(identity: str) -> Path:
    """Return the file that a bisection is exported to unless one is named."""
    return Path(f"{identity}.tar.gz")


def exported_values(identity: str, path: Path, files: int) -> dict[str, Any]:
    """Return what `export` prints with --json."""
    return {"id": identity, "file": str(path.resolve()), "files": files, "bytes": path.stat().st_size}


@contextmanager
def archive_to(to: Path) -> Iterator[Path]:
    """Give a file to write that takes the place of the one that was named when it is complete.

    What a killed process left of an archive of this name is removed; it may be as large as the archive.
    Raises RequestError: it cannot be written; InfrastructureError for a full disk.
    """
    if os.path.lexists(to) and not to.is_file():  # else a device, or a link to a folder, would be replaced
        raise RequestError(f"{to}: is not a regular file", cure="name a file, there already or not")
    prefix = f".{to.name}."
    remove_leftovers(prefix, to.parent)
    with os_errors_of(to):
        folder = make_temporary_folder(prefix, to.parent)
        try:
            draft = folder / "archive"
            yield draft
            publish_file(draft, to)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def require_archive(archive: Path) -> None:
    """Raise RequestError unless a file is there."""
    if not is_file(archive):
        wrong = f"{shown_path(archive)}: {why_no_file(archive)}"
        raise RequestError(wrong, cure="name what 'perfbisect export' wrote")


Accept = Callable[[Stored, list[Record | Decision]], tuple[Stored, list[Record | Decision]]]
"""Returns what is to be kept of a bisection and of what happened in it, or raises RequestError."""


def import_bisection(
    wiring: Wiring,
    archive: Path,
    accept: Accept = lambda stored, events: (stored, events),
    max_bytes: int = MAX_BYTES,
    limits: Mapping[str, int] = exported.MAX_BYTES,
    called: str = "",
) -> Stored:
    """Add a bisection from an archive to this state folder; all of it or nothing.

    max_bytes: of all its files together; limits: of its documents, each, in bytes. called: what errors name
    in place of the archive's path.
    Raises RequestError: no such archive, a bisection of that id exists; InfrastructureError for a full disk.
    """
    require_archive(archive)
    name = called or shown_path(archive)
    state = wiring.settings.state_dir
    store = wiring.store
    remove_leftovers(_PREFIX, state)
    with writing(state):
        prepare_state_folder(state)  # a state file has made it, a database server has not
        folder = make_temporary_folder(_PREFIX, state)
    try:
        try:
            unpack_tar(archive, folder, max_bytes=max_bytes, limits=limits)
        except ArchiveError as error:
            cure = "name what 'perfbisect export' wrote; if it is that, it is damaged"
            reason = (error.details or error.message).replace(f"{folder}/", "").replace(str(archive), name)
            message = f"{name} is not an archive that can be unpacked"
            raise RequestError(message, details=reason, cure=cure) from error
        stored, events = accept(*exported.read(folder, limits, name))
        # Another import of it, between its files and its rows, would lose the files.
        with exclusive_lock(state / "import.lock"):
            _refuse_known(store, stored.id)
            target = wiring.bisection_folder(stored.id)
            shutil.rmtree(target, ignore_errors=True)  # of a bisection that is no longer there
            target.parent.mkdir(mode=0o700, exist_ok=True)
            files = folder / exported.FILES
            files.mkdir(exist_ok=True)
            publish_folder(files, target)
            if stored.status in ENDED:
                action = Action(IMPORTED, wiring.settings.owner, at=wiring.coordinator.now())
                stored = replace(stored, action=action)
            try:
                store.create(stored, events)
            except BaseException:
                _take_back(store, stored.id, target)
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return stored


def _find(store: Store, identity: str) -> Summary | None:
    return next((one for one in store.list(beginning=identity) if one.id == identity), None)


def _take_back(store: Store, identity: str, files: Path) -> None:
    """Remove the files of a bisection that the store does not have, such as on a full disk."""
    with suppress(InfrastructureError):  # where that cannot be told they stay: the next import removes them
        if _find(store, identity) is None:
            shutil.rmtree(files, ignore_errors=True)


def _refuse_known(store: Store, identity: str) -> None:
    """Raise RequestError if there is a bisection of an id."""
    known = _find(store, identity)
    if known is not None:
        remove = f"perfbisect rm {identity}"
        raise RequestError(
            f"a bisection '{identity}' is here already ({known.status})",
            cure=f"'{remove}' removes it"
            if known.status in ENDED
            else f"end it for good and remove it: perfbisect cancel {identity}, then {remove}",
        )
