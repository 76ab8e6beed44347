"""The list of `--kernels`: a file with a kernel in each line, the oldest first, or a folder of packages.

In a file, a line names a package, several that belong together (an image and its modules), or a folder with
vmlinuz and config; paths are relative to the file's folder. Empty lines and those that begin with # count for
nothing. A folder is read in the order of its packages' versions. Everything that can be wrong with a list is
refused here, before anything is unpacked.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bisector.adapters.packages import kernel_files
from bisector.adapters.packages.kernel_identity import IMAGE, read_identity
from bisector.adapters.packages.package_file import (
    PackageFile,
    in_order,
    package_format,
    read_package,
)
from bisector.errors import RequestError
from bisector.model.commit_graph import listed_id
from bisector.schemas.documents.document import expand_user, read_document, shown
from bisector.schemas.kernel.listed_kernel import ListedKernel, content_sum
from bisector.schemas.kernel.release import RUNNING_RELEASE

_LIST_BYTES_MAX = 1 << 20
_KERNELS_MAX = 5000
"""Limits of a list. A distribution makes some 500 kernels in twenty years: ten times that, at 200 bytes."""

_NOT_IN_NAMES = re.compile(r"[^0-9A-Za-z.+~:^_-]+")


@dataclass(frozen=True, slots=True)
class _KernelFiles:
    """One kernel as it was listed. place: for messages; packages: none for a folder."""

    place: str
    files: tuple[Path, ...]
    packages: tuple[PackageFile, ...]

    @property
    def version(self) -> str:
        return self.packages[0].version if self.packages else ""

    @property
    def stem(self) -> str:
        """Its name where the version alone is not enough."""
        if not self.packages:
            return self.files[0].name
        return f"{self.packages[0].name}_{self.version}"


def read_kernels(path: Path) -> tuple[ListedKernel, ...]:
    """Return the kernels of a list in their order. Raises RequestError naming the line that is wrong."""
    try:
        entries = _of_folder(path) if path.is_dir() else [*_of_file(path)]
    except OSError as error:
        raise RequestError(
            f"--kernels {path}: cannot be read: {error.strerror}", cure="name a list of kernels that is there"
        ) from error
    if len(entries) < 2:
        raise RequestError(
            f"--kernels {path}: {'names one kernel' if entries else 'names no kernel'}",
            cure="list two at least: a package (.deb, .rpm) or a kernel's folder a line, the oldest first",
        )
    names = _names(entries)
    kernels = [_read(entry, name) for entry, name in zip(entries, names, strict=True)]
    _refuse_twins(entries, kernels)
    return tuple(kernels)


def _refuse_many(path: Path, kernels: int) -> None:
    """Raise RequestError for more kernels than a list may have, before packages are read: 30 ms each."""
    if kernels > _KERNELS_MAX:
        raise RequestError(
            f"--kernels {path}: more than {_KERNELS_MAX} kernels", cure="list those between good and bad"
        )


def _of_file(path: Path) -> Iterator[_KernelFiles]:
    lines = enumerate(read_document(path, _LIST_BYTES_MAX).splitlines(), start=1)
    listed = [(number, line) for number, line in lines if line.strip() and not line.lstrip().startswith("#")]
    _refuse_many(path, len(listed))
    for number, line in listed:
        place = f"{path}:{number}"
        try:
            paths = [path.parent / expand_user(word) for word in shlex.split(line)]
        except ValueError as error:
            raise RequestError(f"{place}: {error}", cure="close the quotation") from error
        except RequestError as error:
            raise RequestError(f"{place}: {error.message}", cure=error.cure) from error
        yield _entry(place, paths)


def _of_folder(folder: Path) -> list[_KernelFiles]:
    paths = [
        path
        for path in sorted(folder.iterdir())
        if (path / IMAGE).is_file() or (path.is_file() and package_format(path) is not None)
    ]
    _refuse_many(folder, len(paths))
    found = [_entry(str(path), [path]) for path in paths]
    if len(found) > 1 and any(not entry.packages for entry in found):
        raise RequestError(
            f"--kernels {folder}: folders of kernels have no order of their own",
            cure="write their paths into a file, one a line, the oldest first",
        )
    if len(found) == 1:
        return found
    keys = [(entry.version, entry.packages[0].format) for entry in found]
    places = in_order(keys)
    ordered = sorted(zip(keys, found, strict=True), key=lambda one: places[one[0]])
    for (key, entry), (after, next_entry) in pairwise(ordered):
        if key == after:
            raise RequestError(
                f"--kernels {folder}: {entry.stem} and {next_entry.stem} have the same version, and no order",
                cure="keep packages of one kind in the folder, or write their paths into a file, one a line, "
                "the oldest first",
            )
    return [entry for _, entry in ordered]


def _entry(place: str, paths: Sequence[Path]) -> _KernelFiles:
    """Return what one line lists. Raises RequestError."""
    for path in paths:
        if not path.exists():
            raise RequestError(f"{place}: {path} does not exist", cure="name a package or a kernel's folder")
    files = tuple(path.resolve() for path in paths)
    if len(files) == 1 and files[0].is_dir():
        return _KernelFiles(place, files, ())
    packages = []
    for file in files:
        format_ = package_format(file) if file.is_file() else None
        if format_ is None:
            raise RequestError(
                f"{place}: {file} is no package and no kernel's folder",
                cure="name a .deb, an .rpm, or alone in its line a folder with vmlinuz and config",
            )
        try:
            packages.append(read_package(file, format_))
        except RequestError as error:
            raise RequestError(f"{place}: {error.message}", details=error.details, cure=error.cure) from error
    return _KernelFiles(place, files, tuple(packages))


def _names(entries: Sequence[_KernelFiles]) -> list[str]:
    """Return a name for each: its version where all differ, else the stem of its file, else its path."""
    versions = [entry.version for entry in entries]
    stems = [entry.stem for entry in entries]
    names = stems
    if "" not in versions and len({*versions}) == len(versions):
        names = versions
    elif len({*stems}) < len(stems):  # builds of one checkout after another, all in 'build'
        common = os.path.commonpath([entry.files[0].parent for entry in entries])
        names = [str(entry.files[0].relative_to(common)) for entry in entries]
    return [_NOT_IN_NAMES.sub("-", name) for name in names]


def _read(entry: _KernelFiles, name: str) -> ListedKernel:
    try:
        identity = read_identity(entry.files)
    except RequestError as error:
        raise RequestError(
            f"{entry.place}: {error.message}", details=error.details, cure=error.cure
        ) from error
    if re.fullmatch(RUNNING_RELEASE, identity.release) is None:
        raise RequestError(
            f"{entry.place}: its release {shown(identity.release)} cannot be used",
            cure="build it with a CONFIG_LOCALVERSION of letters, digits and . _ + ~ : @ -",
        )
    sums = tuple(kernel_files.files_sum(path) for path in entry.files)
    return ListedKernel(
        id=listed_id(name, content_sum(sums)),
        files=tuple(map(str, entry.files)),
        sums=sums,
        package=" ".join(package.name for package in entry.packages) or entry.files[0].name,
        version=entry.version,
        release=identity.release,
        built=identity.version,
        by=entry.packages[0].by if entry.packages else "",
        when=entry.files[0].stat().st_mtime,
    )


def _refuse_twins(entries: Sequence[_KernelFiles], kernels: Sequence[ListedKernel]) -> None:
    """Refuse kernels that are listed twice, and those that nobody could tell apart once they run."""
    seen: dict[str, str] = {}
    running: dict[tuple[str, str], str] = {}
    for entry, kernel in zip(entries, kernels, strict=True):
        content, identity = content_sum(kernel.sums), (kernel.release, kernel.built)
        if content in seen:
            raise RequestError(
                f"{entry.place}: the same kernel as {seen[content]}", cure="leave one of the two lines out"
            )
        if identity in running:
            raise RequestError(
                f"{entry.place}: once it runs, it cannot be told from {running[identity]}",
                details=f"both say: {kernel.release} {kernel.built}",
                cure="leave one of them out, or build one anew with another CONFIG_LOCALVERSION",
            )
        seen[content] = running[identity] = entry.place
