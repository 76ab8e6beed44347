"""A body that is a temporary file, which is removed however the request ends."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from fastapi.responses import FileResponse
from starlette.types import Receive, Scope, Send

from bisector.model.artefacts import digest_header

_OF_PARTS = (b"range", b"if-range")


class SentFile(FileResponse):
    """A file that is sent whole: a Range, which a server may ignore (RFC 9110, 14.2), is not read."""

    def __init__(self, path: Path, media_type: str, headers: Mapping[str, str] | None = None) -> None:
        """Its header Repr-Digest is its SHA-256."""
        with path.open("rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
        sent = {"Accept-Ranges": "none", "Repr-Digest": digest_header(checksum), **(headers or {})}
        super().__init__(path, media_type=media_type, headers=sent)
        self.done: Callable[[], None] = lambda: None
        """Called once nothing of the file is needed any more."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        headers = [(name, value) for name, value in scope["headers"] if name.lower() not in _OF_PARTS]
        try:
            await super().__call__({**scope, "headers": headers}, receive, send)
        finally:
            self.done()  # at once: nothing can cancel it
