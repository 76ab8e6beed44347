"""Keeping what a boot needs or leaves: a file, with its folders, or a clear reason why not."""

from __future__ import annotations

from pathlib import Path

from bisector.errors import InfrastructureError


def keep(path: Path, data: bytes) -> None:
    """Write a file. Raises InfrastructureError: a disk that is full, a folder that is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise InfrastructureError(f"cannot write {path}: {error.strerror}") from error
