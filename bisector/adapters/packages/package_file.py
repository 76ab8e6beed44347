"""Packages of Debian (.deb) and of RPM's distributions: what they say of themselves, and their files.

dpkg-deb, rpm and rpm2archive read them. A package may come from anywhere: none of its scripts is run, and
what it holds passes through `adapters/system/archive.py`, which keeps every file below one folder and counts
bytes, those of headers as well.
"""

from __future__ import annotations

import contextlib
import functools
import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bisector.adapters.system.archive import bounded_headers
from bisector.adapters.system.command import find_program, reading_bytes, run_command
from bisector.errors import InfrastructureError, RequestError

Format = Literal["deb", "rpm"]

_TOOLS = {"deb": ("dpkg-deb", "dpkg"), "rpm": ("rpm2archive", "rpm")}
"""Per format: the program that unpacks it, and the Debian package that has the program."""

_FIELDS = {
    "deb": ("Package", "Version", "Architecture", "Maintainer"),
    "rpm": ("NAME", "EVR", "ARCH", "VENDOR"),
}

_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+~:^_-]{0,99}")
"""What Debian's policy (5.6.12) and RPM's documentation (rpm-version(7)) allow in a version."""

_ARCHITECTURES = ("amd64", "x86_64")

_SECONDS = 60.0
"""For reading a package's header; a few milliseconds where the disk is idle."""


@dataclass(frozen=True, slots=True)
class PackageFile:
    """One package, as its header describes it."""

    path: Path
    format: Format
    name: str
    version: str
    by: str


def package_format(path: Path) -> Format | None:
    """Return the format of a file, by its first bytes; None for what is no package. Raises OSError."""
    with path.open("rb") as file:
        head = file.read(21)
    if head.startswith(b"!<arch>\ndebian-binary"):
        return "deb"
    return "rpm" if head.startswith(b"\xed\xab\xee\xdb") else None


def read_package(path: Path, format_: Format) -> PackageFile:
    """Return what a package says of itself. Raises RequestError: damaged, or for another architecture."""
    _require_tools(format_)
    names = _FIELDS[format_]
    if format_ == "deb":
        command = ["dpkg-deb", "--field", str(path), *names]
    else:
        form = "".join(f"{name}: %{{{name}}}\\n" for name in names)
        command = ["rpm", "--query", "--package", "--nosignature", "--queryformat", form, str(path)]
    done = run_command(command, timeout=_SECONDS, check=False)
    pairs = (line.partition(": ") for line in done.output.splitlines())
    values = {name: value.strip() for name, _, value in pairs if name in names}
    name, version, arch, by = (values.get(field, "") for field in names)
    if done.code != 0 or not name or _VERSION.fullmatch(version) is None:
        raise RequestError(
            f"{path}: a damaged package",
            details=done.output.strip()[-500:],
            cure="fetch it again",
        )
    if arch not in _ARCHITECTURES:
        raise RequestError(
            f"{path}: a package for {arch or 'no architecture'}",
            cure=f"list kernels for {_ARCHITECTURES[0]} (RPM: {_ARCHITECTURES[1]}), which the testbeds boot",
        )
    return PackageFile(path, format_, name, version, "" if by == "(none)" else by)


@contextlib.contextmanager
def reading_files(path: Path, format_: Format) -> Iterator[tarfile.TarFile]:
    """Give the files of a package as a stream. Raises OSError, tarfile.TarError as `tarfile` does."""
    _require_tools(format_)
    # rpm2archive writes to its output only what it reads from its input.
    command = ["dpkg-deb", "--fsys-tarfile", str(path)] if format_ == "deb" else ["rpm2archive", "-n", "-"]
    with (
        reading_bytes(command, None if format_ == "deb" else path) as stream,
        tarfile.open(fileobj=stream, mode="r|", tarinfo=bounded_headers()) as files,
    ):
        yield files


def in_order(versions: Iterable[tuple[str, Format]]) -> dict[tuple[str, Format], int]:
    """Return the place of each version in the order of its distribution. Raises RequestError: both mixed."""
    known = list(dict.fromkeys(versions))
    if len({format_ for _, format_ in known}) > 1:
        raise RequestError(
            "the folder has packages of Debian and of RPM: their versions have no common order",
            cure="write their paths into a file, one a line, the oldest first",
        )
    ordered = sorted(known, key=functools.cmp_to_key(_compare))
    return {version: place for place, version in enumerate(ordered)}


def _compare(one: tuple[str, Format], other: tuple[str, Format]) -> int:
    (first, format_), (second, _) = one, other
    if format_ == "deb":
        is_less = run_command(["dpkg", "--compare-versions", first, "lt", second], check=False).code == 0
        return -1 if is_less else 0 if first == second else 1
    # Neither has a quote: see _VERSION.
    program = f'%{{lua:print(rpm.vercmp("{first}", "{second}"))}}'
    return int(run_command(["rpm", "--eval", program]).output)


def _require_tools(format_: Format) -> None:
    """Raise InfrastructureError naming the program that is missing to read a package."""
    program, package = _TOOLS[format_]
    if find_program(program) is None:
        raise InfrastructureError(
            f"'{program}', which reads .{format_} packages, is not installed",
            cure=f"apt-get install {package}",
        )
