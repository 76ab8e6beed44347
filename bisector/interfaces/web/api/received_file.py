"""A body that is a file: kept in a temporary folder while it is used, and verified by Repr-Digest."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi.concurrency import run_in_threadpool
from fastapi.requests import Request

from bisector.app.artefacts.shared_files import make_workspace
from bisector.errors import InfrastructureError, RequestError
from bisector.interfaces.web.authority import server_of
from bisector.model.artefacts import digest_header


@asynccontextmanager
async def received_file(request: Request, what: str, max_bytes: int) -> AsyncIterator[Path]:
    """Give the body of a request as a file. what: it is, in words.

    Raises RequestError: it is larger, or not what was sent; InfrastructureError: it cannot be kept.
    """
    folder = await run_in_threadpool(make_workspace, server_of(request).wiring)
    path, digest, received = folder / "content", hashlib.sha256(), 0
    try:
        with path.open("wb") as file:
            async for block in request.stream():
                received += len(block)
                if received > max_bytes:
                    raise RequestError(
                        f"the {what} has more than {max_bytes >> 20} MiB", cure="keep it there"
                    )
                digest.update(block)
                await run_in_threadpool(file.write, block)
        if request.headers.get("Repr-Digest") != digest_header(digest.hexdigest()):
            raise RequestError(
                f"the {what} did not arrive as the header Repr-Digest says", cure="send it again"
            )
        yield path
    except OSError as error:
        raise InfrastructureError(
            f"the server cannot take the {what}: {error.strerror}", cure="free some space on the server"
        ) from error
    finally:
        await run_in_threadpool(remove_folder, folder)


def remove_folder(folder: Path) -> None:
    """Remove a temporary folder."""
    shutil.rmtree(folder, ignore_errors=True)
