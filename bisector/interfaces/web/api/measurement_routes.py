"""Routes that take long or move files: plans, tries, measurements, archives.

Few of these are answered at once, so that nobody who may only look can take all of the server's CPUs.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from fastapi.requests import Request
from fastapi.responses import FileResponse
from pydantic import Field

from bisector.app.artefacts.shared_files import make_workspace
from bisector.app.operations.foreign_bisection import MAX_ARCHIVE_BYTES
from bisector.app.operations.measurement_values import profile_to_json, samples_to_json
from bisector.app.operations.remote_operations import FILES_HEADER
from bisector.interfaces.web.api.bisection_routes import Identity, changed, named, operations
from bisector.interfaces.web.api.received_file import received_file, remove_folder
from bisector.interfaces.web.api.sent_file import SentFile
from bisector.interfaces.web.authority import Operator, Reader, server_of
from bisector.schemas.loading import Spec
from bisector.schemas.ranges import Hours
from bisector.schemas.remote_request import RemoteRequest
from bisector.schemas.web_settings import Rev

router = APIRouter(tags=["bisections"])
imports = APIRouter(tags=["bisections"], max_body_size=MAX_ARCHIVE_BYTES)


class Try(Spec):
    """Which commit may mend the culprit of a bisection."""

    rev: Rev = Field(description="a commit of the bisection's repository")
    max_hours: Hours | None = None
    dry_run: bool = Field(default=False, description="only say what would be measured")


@router.post("/plans")
def plan(request: Request, user: Reader, asked: RemoteRequest) -> dict[str, Any]:
    """Say what a start would do, and what it would cost: `plan`, as values ('plan') and text ('rows')."""
    with server_of(request).few.one(user.name):
        return operations(request, user).plan(asked)


@router.post("/bisections/{id}/tries", status_code=201)
def try_commit(request: Request, user: Operator, id: Identity, asked: Try) -> dict[str, Any]:
    """Queue a comparison of a commit with the culprit: `try --rev`. Its id is a bisection's."""
    with server_of(request).few.one(user.name):
        made = operations(request, user).try_commit(
            named(id), asked.rev, asked.max_hours, dry_run=asked.dry_run
        )
    return made if asked.dry_run else changed(request, user, "try", made, f"{id} {asked.rev}")


@router.get("/bisections/{id}/samples")
def samples(request: Request, user: Reader, id: Identity, rev: Rev) -> list[dict[str, Any]]:
    """Return the samples of a commit, one set a testbed: what `compare` reads."""
    with server_of(request).few.one(user.name):
        return samples_to_json(operations(request, user).samples(named(id), rev))


@router.get("/bisections/{id}/profile")
def profile(request: Request, user: Reader, id: Identity, rev: Rev) -> dict[str, Any]:
    """Return what a monitor recorded of a commit: what `profile` reads. Symbols are named by their place."""
    with server_of(request).few.one(user.name):
        return profile_to_json(operations(request, user).recording(named(id), rev))


@router.get("/bisections/{id}/archive", response_class=FileResponse)
def export(request: Request, user: Reader, id: Identity) -> SentFile:
    """Return a bisection with its records and files as an archive: `export`. Repr-Digest has its SHA-256."""
    server = server_of(request)
    with ExitStack() as until_sent:
        until_sent.enter_context(server.downloads.one(user.name))
        folder = make_workspace(server.wiring)
        until_sent.callback(remove_folder, folder)
        path = folder / "content"
        with server.few.one(user.name):
            made = operations(request, user).export(named(id), path)
            sent = {FILES_HEADER: str(made["files"])}
            answer = SentFile(path, "application/gzip", sent)
        answer.done = until_sent.pop_all().close
    return answer


@imports.post("/imports", status_code=201)
async def import_(request: Request, user: Operator) -> dict[str, Any]:
    """Add a bisection that has ended from an archive, the body: `import`. It names what is listed here."""
    # No other slot is needed for the work: who has sent gigabytes would have to send them again.
    with server_of(request).uploads.one(user.name):
        async with received_file(request, "archive", MAX_ARCHIVE_BYTES) as path:
            made = await run_in_threadpool(operations(request, user).import_foreign, path)
    return await run_in_threadpool(changed, request, user, "import", made)
