"""Artefacts in a folder that all hosts have mounted: `<root>/<kind>/<key>/<SHA-256>`.

The checksum is the file's name, so both appear in one rename. Writers of one key never disturb each other:
each adds a file of its own. There are no locks, which network file systems lose.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from bisector.adapters.system.disk_usage import disk_usage
from bisector.adapters.system.files import os_errors_reported, replacing_or_os_error, sha256_of
from bisector.errors import DamagedArtefact, InfrastructureError
from bisector.model.artefacts import KINDS, SHA256_PATTERN, Artefact

_COPY_BYTES = 1 << 20
"""Bytes that are copied at a time, and that a probe of the folder writes. Chosen."""
_MODE = 0o640
"""Images hold the key of their guests: nobody but the lab's user and group reads artefacts."""

_DAMAGED = "damaged-"
"""Beginning of the name of a file that was set aside."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An artefact in the folder. used: when it was last put or read, seconds since the epoch."""

    artefact: Artefact
    path: Path
    bytes: int
    used: float


class FolderArtefacts:
    """store_ports.ArtefactStore in a folder, which must exist: a mount that is missing is not filled."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def check(self) -> None:
        """Raise InfrastructureError unless artefacts can be put and read now."""
        self._require_root()
        with self._reported("cannot be written"):
            probe = self.root / f".probe-{secrets.token_hex(4)}"
            try:
                probe.write_bytes(bytes(_COPY_BYTES))
            finally:
                probe.unlink(missing_ok=True)

    def has(self, artefact: Artefact) -> bool:
        """Return whether there is such an artefact."""
        return bool(self._files(artefact))

    def put(self, artefact: Artefact, file: Path) -> str:
        """Keep a copy of a file; return its SHA-256. Raises InfrastructureError."""
        self._require_root()
        with self._reported(f"takes no {artefact}"):
            size = file.stat().st_size
            if size > artefact.max_bytes:
                raise InfrastructureError(
                    f"the {artefact} has {size >> 20} MiB, and {artefact.max_bytes >> 20} MiB may be put"
                )
            checksum = sha256_of(file)
            path = self._folder(artefact) / checksum
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing_or_os_error(path) as partial, file.open("rb") as source:
                with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, _MODE)) as target:
                    copied = _copy(source, target)
                if copied != checksum:
                    raise InfrastructureError(f"the {artefact} was changed while it was put: {file}")
        return checksum

    def get(self, artefact: Artefact, target: Path) -> bool:
        """Write an artefact to a new file; False where there is none. Raises DamagedArtefact."""
        for path in self._files(artefact):
            with self._reported(f"does not give the {artefact}"):
                try:
                    source = path.open("rb")
                except FileNotFoundError:  # removed meanwhile, or set aside by another host
                    continue
                with source, target.open("wb") as copy:
                    checksum = _copy(source, copy, artefact.max_bytes)
                if checksum == path.name:
                    with suppress(OSError):  # what cannot be written can still be read
                        os.utime(path)
                    return True
                target.unlink()
                aside = _set_aside(path)
            raise DamagedArtefact(
                f"{path}: its checksum is wrong, so the {artefact} is made again",
                details=f"SHA-256 {checksum or 'not computed: it is too large'}\nset aside as {aside}",
                cure="look at the disk and the network of the artefact store",
            )
        return False

    def set_aside(self, artefact: Artefact) -> None:
        """Withdraw an artefact: its files are renamed, so that they are not given any more."""
        with self._reported("cannot be written"):
            for path in self._files(artefact):
                _set_aside(path)

    def kept(self) -> Iterator[Kept]:
        """Yield what is there, also what was set aside or is left of a killed process."""
        for kind in KINDS:
            for folder in sorted((self.root / kind).glob("[!.]*/")):
                with suppress(OSError, ValueError):  # removed meanwhile; a stranger's folder
                    used = max(path.lstat().st_mtime for path in (folder, *folder.iterdir()))
                    yield Kept(Artefact(kind, folder.name), folder, disk_usage(folder), used)

    def boots_of(self, bisection: str) -> Iterator[Path]:
        """Yield the folders of what the boots of a bisection left."""
        yield from (self.root / "boot").glob(f"{bisection}@*")

    def _folder(self, artefact: Artefact) -> Path:
        return self.root / artefact.kind / artefact.key

    def _files(self, artefact: Artefact) -> list[Path]:
        """Return the files of an artefact, one for each content that was put."""
        with self._reported("cannot be read"):
            try:
                found = sorted(self._folder(artefact).iterdir())
            except FileNotFoundError:
                self._require_root()
                return []
            return [path for path in found if re.fullmatch(SHA256_PATTERN, path.name)]

    def _require_root(self) -> None:
        if not self.root.is_dir():
            raise InfrastructureError(
                f"the artefact store {self.root} is not there",
                cure="mount it, or make the folder; the setting 'artefacts' names it",
            )

    def _reported(self, what: str) -> AbstractContextManager[None]:
        return os_errors_reported(
            f"the artefact store {self.root} {what}",
            cure="look at its mount, its owner, its free space, and at ReadWritePaths of the unit",
        )


def _set_aside(path: Path) -> Path:
    """Rename a file, so that it is not given any more; return its new path."""
    aside = path.with_name(f"{_DAMAGED}{path.name}")
    with suppress(FileNotFoundError):  # another host did it
        path.rename(aside)
    return aside


def _copy(source: BinaryIO, target: BinaryIO, limit: int | None = None) -> str:
    """Copy a file; return its SHA-256, '' for one of more than `limit` bytes."""
    digest, copied = hashlib.sha256(), 0
    while block := source.read(_COPY_BYTES):
        copied += len(block)
        if limit is not None and copied > limit:
            return ""
        digest.update(block)
        target.write(block)
    return digest.hexdigest()
