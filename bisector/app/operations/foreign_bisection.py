"""A bisection that somebody sends to a server: it may name only what a request from elsewhere may name.

What is kept is used later: commands look up commits in its repository and read its files. So its request is
made anew of what the server's settings list, and its records name no file but those that came with it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from bisector.adapters.store.state_folder import prepare_state_folder
from bisector.app import transfer
from bisector.app.artefacts.local_files import below_boots, rename_files
from bisector.errors import PerfbisectError, RequestError
from bisector.model.decisions import Decision
from bisector.model.records import Record
from bisector.model.stored_bisection import ENDED, Stored
from bisector.schemas.archive import exported
from bisector.schemas.remote_request import listed_request
from bisector.schemas.request import Request, read_accepted
from bisector.schemas.web_settings import WebSettings
from bisector.schemas.workload.workload import workload_names

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring

MAX_ARCHIVE_BYTES = 4 << 30
"""Largest archive that is accepted. A boot keeps at most 8 MiB of console and raw output, which compress to a
tenth, so this is room for thousands of boots."""
_CALLED = "the archive"
"""What errors call it, since the sender knows no path on the server."""
_CURE = "import it on the server's machine, with 'perfbisect import'"


def import_foreign(wiring: Wiring, archive: Path) -> Stored:
    """Add a bisection that has ended from an archive that a user has sent; all of it or nothing.

    Half of the free space of the state folder's disk may be used. Raises RequestError: it has not ended, or
    names what is not listed.
    """
    state = wiring.settings.state_dir  # where it is unpacked, perhaps on another disk than the archive
    prepare_state_folder(state)
    free = shutil.disk_usage(state).free // 2
    accept = partial(_accept, wiring)
    limit = min(transfer.MAX_BYTES, free)
    return transfer.import_bisection(wiring, archive, accept, limit, exported.MAX_FOREIGN_BYTES, _CALLED)


def _accept(
    wiring: Wiring, stored: Stored, events: list[Record | Decision]
) -> tuple[Stored, list[Record | Decision]]:
    if stored.status not in ENDED:
        raise RequestError(
            f"the bisection '{stored.id}' has not ended ({stored.status}): to resume it would execute what "
            "its archive says",
            cure=f"let it end where it is, and export it again; or {_CURE}",
        )
    accepted = read_accepted(stored.request)
    request = _listed(wiring, accepted.request, (accepted.good, accepted.bad))
    boots = wiring.bisection_folder(stored.id) / "boots"
    kept = accepted.model_copy(update={"request": request}).model_dump_json()
    own = partial(_own, boots)
    kept_events = [e if isinstance(e, Decision) else rename_files(e, own) for e in events]
    return replace(stored, request=kept), kept_events


def _listed(wiring: Wiring, request: Request, ends: Sequence[str]) -> Request:
    """Return a request with what the server's settings list in place of what it names."""
    web = wiring.settings.web or WebSettings()
    try:
        return listed_request(request, _repository(wiring, web, ends), web, workload_names())
    except RequestError as error:
        error.cure = _CURE
        raise


def _repository(wiring: Wiring, web: WebSettings, ends: Sequence[str]) -> str:
    """Return the name of the first listed repository that has both ends. Raises RequestError."""
    for name, path in web.repositories.items():
        try:
            source = wiring.source(path)
            if [source.resolve(end) for end in ends] == list(ends):
                return name
        except PerfbisectError:
            continue
    both = " and ".join(end[:12] for end in ends)
    raise RequestError(f"no repository that the server lists has {both}", cure=_CURE)


def _own(boots: Path, path: str, boot: str) -> str:
    """Return the name of a file of a boot in the bisection's folder; '' for every other file."""
    below = below_boots(path, boot)
    return "" if below is None or ".." in PurePosixPath(path).parts else str(boots.joinpath(*below))
