"""Artefacts for workers whose host has not mounted the folder: the body is the file, Repr-Digest its SHA-256.

No folder, path or address is named by a request: a kind and a key are all. What is put here boots on the
lab's machines, so that only tokens of the role 'worker' pass.
"""

from __future__ import annotations

from contextlib import ExitStack
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as InPath
from fastapi.concurrency import run_in_threadpool
from fastapi.requests import Request
from fastapi.responses import FileResponse, Response

from bisector.app.artefacts.shared_files import make_workspace
from bisector.app.wiring import Wiring
from bisector.errors import NotFound
from bisector.interfaces.web.api.received_file import received_file, remove_folder
from bisector.interfaces.web.api.sent_file import SentFile
from bisector.interfaces.web.authority import Worker, server_of
from bisector.model.artefacts import KEY_PATTERN, MAX_BYTES, Artefact, ArtefactKind
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
def get_artefact(request: Request, user: Worker, kind: ArtefactKind, key: Key) -> SentFile:
    """Give an artefact whose checksum was verified."""
    artefact, folder = Artefact(kind, key), make_workspace(server_of(request).wiring)
    path = folder / "content"
    with ExitStack() as until_sent:
        until_sent.callback(remove_folder, folder)
        if not _store(request).get(artefact, path):
            raise NotFound(f"there is no {artefact}", cure="it is made by whoever needs it")
        answer = SentFile(path, "application/x-tar")
        answer.done = until_sent.pop_all().close
    return answer


@router.put("/{kind}/{key}", status_code=HTTPStatus.CREATED)
async def put_artefact(request: Request, user: Worker, kind: ArtefactKind, key: Key) -> dict[str, str]:
    """Keep the body as an artefact, if it has the checksum that Repr-Digest says."""
    artefact = Artefact(kind, key)
    async with received_file(request, str(artefact), artefact.max_bytes) as path:
        return {"sha256": await run_in_threadpool(_store(request).put, artefact, path)}


@router.delete("/{kind}/{key}", status_code=HTTPStatus.NO_CONTENT)
def set_artefact_aside(request: Request, user: Worker, kind: ArtefactKind, key: Key) -> None:
    """Withdraw an artefact whose content is wrong; people can still look at it in the folder."""
    _store(request).set_aside(Artefact(kind, key))


def _store(request: Request) -> ArtefactStore:
    wiring: Wiring = server_of(request).wiring
    if wiring.exchange is None:
        raise NotFound(
            "this server has no artefact store", cure='artefacts = "/FOLDER" in its perfbisect.toml'
        )
    return wiring.exchange.store
