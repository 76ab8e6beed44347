"""Artefacts for workers whose host has not mounted the folder: the body is the file, Repr-Digest its SHA-256.

No folder, path or address is named by a request: a kind and a key are all. What is put here boots on the
lab's machines, so that only tokens of the role 'worker' pass.
"""

from __future__ import annotations

import hashlib
import shutil
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as InPath
from fastapi.concurrency import run_in_threadpool
from fastapi.requests import Request
from fastapi.responses import FileResponse, Response
from starlette.background import BackgroundTask

from bisector.app.artefacts.shared_files import make_workspace
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError, NotFound, RequestError
from bisector.interfaces.web.authority import Worker, server_of
from bisector.model.artefacts import KEY_PATTERN, MAX_BYTES, Artefact, ArtefactKind, digest_header
from bisector.store_ports import ArtefactStore

Key = Annotated[str, InPath(pattern=f"^{KEY_PATTERN}$")]


router = APIRouter(prefix="/artefacts", tags=["artefacts"], max_body_size=max(MAX_BYTES.values()))


@router.get("", status_code=HTTPStatus.NO_CONTENT)
def check_artefacts(request: Request, user: Worker) -> None:
    """Say whether artefacts can be put and read now."""
    _store(request).check()


@router.head("/{kind}/{key}")
def has_artefact(request: Request, user: Worker, kind: ArtefactKind, key: Key) -> Response:
    """Say whether there is an artefact."""
    found = _store(request).has(Artefact(kind, key))
    return Response(status_code=HTTPStatus.OK if found else HTTPStatus.NOT_FOUND)


@router.get("/{kind}/{key}", response_class=FileResponse)
def get_artefact(request: Request, user: Worker, kind: ArtefactKind, key: Key) -> FileResponse:
    """Give an artefact whose checksum was verified."""
    artefact, folder = Artefact(kind, key), make_workspace(server_of(request).wiring)
    path = folder / "content"
    try:
        if not _store(request).get(artefact, path):
            raise NotFound(f"there is no {artefact}", cure="it is made by whoever needs it")
        with path.open("rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
    except BaseException:
        _remove(folder)
        raise
    return FileResponse(
        path,
        media_type="application/x-tar",
        headers={"Repr-Digest": digest_header(checksum)},
        background=BackgroundTask(_remove, folder),
    )


@router.put("/{kind}/{key}", status_code=HTTPStatus.CREATED)
async def put_artefact(request: Request, user: Worker, kind: ArtefactKind, key: Key) -> dict[str, str]:
    """Keep the body as an artefact, if it has the checksum that Repr-Digest says."""
    artefact, folder = Artefact(kind, key), await run_in_threadpool(make_workspace, server_of(request).wiring)
    path, digest, received = folder / "content", hashlib.sha256(), 0
    try:
        with path.open("wb") as file:
            async for block in request.stream():
                received += len(block)
                if received > artefact.max_bytes:
                    raise RequestError(
                        f"the {artefact} has more than {artefact.max_bytes >> 20} MiB", cure="keep it there"
                    )
                digest.update(block)
                await run_in_threadpool(file.write, block)
        if request.headers.get("Repr-Digest") != digest_header(digest.hexdigest()):
            raise RequestError(
                f"the {artefact} did not arrive as the header Repr-Digest says", cure="send it again"
            )
        return {"sha256": await run_in_threadpool(_store(request).put, artefact, path)}
    except OSError as error:
        raise InfrastructureError(
            f"the server cannot take the {artefact}: {error.strerror}", cure="free some space on the server"
        ) from error
    finally:
        await run_in_threadpool(_remove, folder)


@router.delete("/{kind}/{key}", status_code=HTTPStatus.NO_CONTENT)
def set_artefact_aside(request: Request, user: Worker, kind: ArtefactKind, key: Key) -> None:
    """Give an artefact no more whose content is wrong; people can still look at it in the folder."""
    _store(request).set_aside(Artefact(kind, key))


def _store(request: Request) -> ArtefactStore:
    wiring: Wiring = server_of(request).wiring
    if wiring.exchange is None:
        raise NotFound(
            "this server has no artefact store", cure='artefacts = "/FOLDER" in its perfbisect.toml'
        )
    return wiring.exchange.store


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
