"""Files of patches: named by a request, and the same until its bisection ends."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from bisector.errors import RequestError


def check_patches(paths: Sequence[str], sums: Sequence[str]) -> None:
    """Raise RequestError for a patch that is not what it was. sums: what `digest` gave then."""
    for path, known in zip(paths, sums, strict=True):
        if digest(Path(path)) != known:
            raise RequestError(
                f"the patch {path} has changed since the bisection began", cure="start a new one"
            )


def digest(path: Path) -> str:
    """Return the SHA-256 (hex) of a file. Raises RequestError."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise RequestError(
            f"the patch {path} cannot be read",
            details=str(error),
            cure="put it back, or start a new bisection",
        ) from error
