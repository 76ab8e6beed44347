"""Archives: written without links and owners, unpacked within limits and below one folder only.

`tarfile`'s own filter for data does the same and more, but Debian 12's Python (3.11.2) is older than it.
"""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import io
import lzma
import shutil
import tarfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Self

from bisector.adapters.system.files import write_error
from bisector.errors import InfrastructureError

_COMPRESSION = 1
"""zlib's fastest level: what is packed is read once or never."""

MAX_MEMBERS = 100_000
"""A kernel has about 6,000 modules, a suite's results some thousand files; more would fill a file system."""


_HEADER_MAX = 1 << 20
"""Bytes of one extended header: paths have 4 KiB at most (PATH_MAX), attributes 64 KiB (XATTR_SIZE_MAX)."""

_HEADERS_MAX = 64 << 20
"""Bytes of all extended headers of an archive: 100,000 files with 640 bytes each."""

_HEADERS_OF_A_FILE_MAX = 16
"""Usual are four at most: name, link, attributes, those of all files. `tarfile` reads them by recursion."""

_MAX_FOLDERS = 100
"""How deep a file may lie: Linux's tree is 12 deep. Python makes and removes folders by recursion."""

_EXTENDED = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


_GZIP, _BZIP2, _XZ = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00"
"""What archives that are compressed begin with."""

_PART_BYTES = 1 << 20
"""Read at once, of what follows the last file."""


class ArchiveError(InfrastructureError):
    """Not whole, too large, or with a name that leads out of the folder."""


def pack_tar(folder: Path, archive: Path, left_out: Collection[Path] = (), *, compressed: bool) -> None:
    """Write the files of a folder into a new tar archive: no links, sockets and pipes. Raises OSError."""
    how: dict[str, Any] = {"mode": "w:gz", "compresslevel": _COMPRESSION} if compressed else {"mode": "w"}
    with tarfile.open(archive, **how) as members:
        for path in regular_files(folder, left_out):
            members.add(path, str(path.relative_to(folder)), recursive=False, filter=anonymous)


def regular_files(folder: Path, left_out: Collection[Path] = ()) -> Iterator[Path]:
    """Yield the files below a folder: no links, sockets and pipes."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path not in left_out:
            yield path


def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out whose file it is."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def bounded_headers() -> type[tarfile.TarInfo]:
    """Return what an archive from elsewhere is opened with, as `tarinfo`: each archive has its own.

    `tarfile` reads extended headers, those of pax and GNU's long names, into memory whatever size they claim,
    and keeps the attributes of every file. With this it raises tarfile.ReadError for too large or too many
    ones, and keeps none of the attributes.
    """
    room, in_a_row = _HEADERS_MAX, 0

    class Bounded(tarfile.TarInfo):
        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
            nonlocal room, in_a_row
            info = super().frombuf(buf, encoding, errors)
            if info.type not in _EXTENDED:
                in_a_row = 0
                return info
            if not 0 <= info.size <= _HEADER_MAX:  # GNU's form of numbers can be negative
                raise tarfile.ReadError(f"a header of {info.size} bytes, where {_HEADER_MAX} are allowed")
            room -= info.size
            in_a_row += 1
            if room < 0 or in_a_row > _HEADERS_OF_A_FILE_MAX:
                raise tarfile.ReadError(
                    f"more than {_HEADERS_MAX >> 20} MiB of headers, or {_HEADERS_OF_A_FILE_MAX} of one file"
                )
            return info

        @classmethod
        def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
            info = super().fromtarfile(tarfile)
            info.pax_headers = {}
            return info

    return Bounded


def unpack_tar(
    archive: Path,
    folder: Path,
    *,
    max_bytes: int,
    max_members: int = MAX_MEMBERS,
    limits: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Unpack the files and folders of a tar archive below a folder; links and devices are left out.

    limits: of single files by their path in the archive, in bytes.
    Of the permissions only the execute bit counts; owners and times are those of now. Raises ArchiveError,
    InfrastructureError for a full disk; what was unpacked until then is left.
    """
    with _archive_errors(archive, folder), _decompressed(archive) as stream:
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=bounded_headers()) as members:
            unpack_members(
                members, archive, folder, max_bytes=max_bytes, max_members=max_members, limits=limits
            )
        left = max_bytes
        while part := stream.read(min(_PART_BYTES, left + 1)):  # the checksum is behind the last byte
            left -= len(part)
            if left < 0:
                raise ArchiveError(f"{archive}: more than {max_bytes >> 20} MiB behind its files")


def _decompressed(archive: Path) -> io.BufferedIOBase:
    """Open an archive by its first bytes. Raises OSError.

    `tarfile` itself compares no checksum of gzip: of a thousand archives with one wrong bit it unpacked 750
    with other content, or without some of its files.
    """
    with archive.open("rb") as file:
        begin = file.read(len(_XZ))
    if begin.startswith(_GZIP):
        return gzip.open(archive)
    if begin.startswith(_BZIP2):
        return bz2.open(archive)
    return lzma.open(archive) if begin == _XZ else archive.open("rb")


def unpack_members(
    members: tarfile.TarFile,
    archive: Path,
    folder: Path,
    *,
    max_bytes: int,
    max_members: int = MAX_MEMBERS,
    limits: Mapping[str, int] = MappingProxyType({}),
    wanted: Callable[[PurePosixPath], bool] = lambda path: True,
) -> None:
    """Do the same with an opened archive, which is read as a stream. wanted: what else is left out."""
    unpacked = 0
    with _archive_errors(archive, folder):
        for number, member in enumerate(members, start=1):
            unpacked += member.size
            if number > max_members or unpacked > max_bytes:
                raise ArchiveError(
                    f"{archive}: more than {max_members} files or {max_bytes >> 20} MiB",
                    cure="look at what wrote it",
                )
            limit = limits.get(str(PurePosixPath(member.name)), max_bytes)
            if member.size > limit:
                raise ArchiveError(
                    f"{archive}: '{member.name}' is larger than {limit >> 20} MiB",
                    cure="look at what wrote it",
                )
            if wanted(PurePosixPath(member.name)):
                _unpack(members, member, archive, folder)


@contextlib.contextmanager
def _archive_errors(archive: Path, folder: Path) -> Iterator[None]:
    """Raise ArchiveError for what is no whole archive, InfrastructureError for a full disk."""
    try:
        yield
    except (OSError, EOFError, ValueError, tarfile.TarError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise write_error(folder, error) from error
        raise ArchiveError(f"{archive} cannot be unpacked into {folder}", details=str(error)) from error


def _unpack(members: tarfile.TarFile, member: tarfile.TarInfo, archive: Path, folder: Path) -> None:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts:
        raise ArchiveError(
            f"{archive}: '{member.name}' lies outside what was asked for", cure="look at what wrote it"
        )
    if len(path.parts) > _MAX_FOLDERS:
        raise ArchiveError(
            f"{archive}: '{member.name[:80]}...' lies more than {_MAX_FOLDERS} folders deep",
            cure="look at what wrote it",
        )
    target = folder / path
    content = members.extractfile(member) if member.isfile() else None
    if content is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            shutil.copyfileobj(content, file)
        target.chmod(0o755 if member.mode & 0o100 else 0o644)
    elif member.isdir():
        target.mkdir(parents=True, exist_ok=True)


def read_compressed(path: Path, max_bytes: int) -> bytes:
    """Return a file's content, decompressed where its name ends in .gz or .xz. Raises ArchiveError."""
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as packed:
                data = packed.read(max_bytes + 1)
        elif path.suffix == ".xz":
            with lzma.open(path) as packed:
                data = packed.read(max_bytes + 1)
        else:
            with path.open("rb") as file:
                data = file.read(max_bytes + 1)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise ArchiveError(f"{path} cannot be read", details=str(error)) from error
    if len(data) > max_bytes:
        raise ArchiveError(f"{path} has more than {max_bytes >> 20} MiB")
    return data
