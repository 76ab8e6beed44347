"""What takes long or moves files: plans, tries, what was measured of a commit, archives of bisections.

Few of these are answered at once, so that nobody who may only look can take all of the server's CPUs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from fastapi.requests import Request
from fastapi.responses import FileResponse
from pydantic import Field
from starlette.background import BackgroundTask

from bisector.app.artefacts.shared_files import make_workspace
from bisector.app.operations.foreign_bisection import MAX_ARCHIVE_BYTES
from bisector.app.operations.measurement_values import profile_to_json, samples_to_json
from bisector.app.operations.remote_operations import FILES_HEADER
from bisector.interfaces.web.api.bisection_routes import Identity, changed, named, operations
from bisector.interfaces.web.api.received_file import received_file, remove_folder
from bisector.interfaces.web.authority import Operator, Reader, server_of
from bisector.interfaces.web.problems import Refused
from bisector.model.artefacts import digest_header
from bisector.schemas.loading import Spec
from bisector.schemas.ranges import Hours
from bisector.schemas.remote_request import RemoteRequest
from bisector.schemas.web_settings import Rev

router = APIRouter(tags=["bisections"])
imports = APIRouter(tags=["bisections"], max_body_size=MAX_ARCHIVE_BYTES)

_RETRY_SECONDS = 5


class Try(Spec):
    """Which commit may mend the culprit of a bisection."""

    rev: Rev = Field(description="a commit of the bisection's repository")
    max_hours: Hours | None = None
    dry_run: bool = Field(default=False, description="only say what would be measured")


@contextmanager
def _one_of_few(request: Request) -> Iterator[None]:
    """Do something that takes long. Raises Refused while enough others do."""
    few = server_of(request).few
    if not few.acquire(blocking=False):
        raise Refused(
            HTTPStatus.TOO_MANY_REQUESTS,
            "the server is busy with plans and files of others",
            cure="ask again in a few seconds",
            headers={"Retry-After": str(_RETRY_SECONDS)},
        )
    try:
        yield
    finally:
        few.release()


@router.post("/plans")
def plan(request: Request, user: Reader, asked: RemoteRequest) -> dict[str, Any]:
    """Say what a start would do, and what it would cost: `plan`, as values ('plan') and text ('rows')."""
    with _one_of_few(request):
        return operations(request, user).plan(asked)


@router.post("/bisections/{id}/tries", status_code=201)
def try_commit(request: Request, user: Operator, id: Identity, asked: Try) -> dict[str, Any]:
    """Queue a comparison of a commit with the culprit: `try --rev`. Its id is a bisection's."""
    with _one_of_few(request):
        made = operations(request, user).try_commit(
            named(id), asked.rev, asked.max_hours, dry_run=asked.dry_run
        )
    return made if asked.dry_run else changed(request, user, "try", made, f"{id} {asked.rev}")


@router.get("/bisections/{id}/samples")
def samples(request: Request, user: Reader, id: Identity, rev: Rev) -> list[dict[str, Any]]:
    """Return the samples of a commit, one set a testbed: what `compare` reads."""
    with _one_of_few(request):
        return samples_to_json(operations(request, user).samples(named(id), rev))


@router.get("/bisections/{id}/profile")
def profile(request: Request, user: Reader, id: Identity, rev: Rev) -> dict[str, Any]:
    """Return what a monitor recorded of a commit: what `profile` reads. Symbols are named by their place."""
    with _one_of_few(request):
        return profile_to_json(operations(request, user).recording(named(id), rev))


@router.get("/bisections/{id}/archive", response_class=FileResponse)
def export(request: Request, user: Reader, id: Identity) -> FileResponse:
    """Return a bisection with its records and files as an archive: `export`. Repr-Digest has its SHA-256."""
    folder = make_workspace(server_of(request).wiring)
    try:
        with _one_of_few(request):
            path = folder / "content"
            made = operations(request, user).export(named(id), path)
            with path.open("rb") as file:
                checksum = hashlib.file_digest(file, "sha256").hexdigest()
    except BaseException:
        remove_folder(folder)
        raise
    return FileResponse(
        path,
        media_type="application/gzip",
        headers={"Repr-Digest": digest_header(checksum), FILES_HEADER: str(made["files"])},
        background=BackgroundTask(remove_folder, folder),
    )


@imports.post("/imports", status_code=201)
async def import_(request: Request, user: Operator) -> dict[str, Any]:
    """Add a bisection that has ended from an archive, the body: `import`. It names what is listed here."""
    with _one_of_few(request):
        async with received_file(request, "archive", MAX_ARCHIVE_BYTES) as path:
            made = await run_in_threadpool(operations(request, user).import_foreign, path)
    return await run_in_threadpool(changed, request, user, "import", made)
