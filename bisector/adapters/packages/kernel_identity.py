"""Identity of a kernel in packages or in a folder, and whether it is complete."""

from __future__ import annotations

import lzma
import re
import tarfile
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath

from bisector.adapters.build.bzimage import HEAD_BYTES, Identity, identity, identity_in
from bisector.adapters.packages.package_file import Format, package_format, reading_files
from bisector.adapters.system.archive import MAX_MEMBERS
from bisector.adapters.system.files import os_errors_reported
from bisector.errors import RequestError

IMAGE_PATH = re.compile(r"(usr/)?(boot/vmlinuz-[^/]+|lib/modules/[^/]+/vmlinuz)")
"""Debian and its children, openSUSE and the kernel's own package targets; Fedora and RHEL."""

_MODULE = re.compile(r"(?:usr/)?lib/modules/([^/]+)/kernel/.+")

BYTES_MAX = 4 << 30
"""Unpacked: a kernel with all modules has 0.5 GiB, with debug information in them some GiB."""

IMAGE, CONFIG, SYSTEM_MAP, MODULES = "vmlinuz", "config", "System.map", "lib/modules"
"""Files of a folder that is listed; the first two must be there."""


@dataclass(slots=True)
class _PackageContents:
    """What packages of one line hold.

    images: path and first bytes; configs: paths of what may be one; modules: of which releases.
    """

    images: list[tuple[PurePosixPath, bytes]] = field(default_factory=list)
    configs: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)

    def has_config(self, image: PurePosixPath) -> bool:
        """Return whether the configuration of an image was seen."""
        return not self.configs.isdisjoint(config_paths(release_of(image)))


def read_identity(files: Sequence[Path]) -> Identity:
    """Return how a kernel identifies itself. files: its packages, or a folder. RequestError: no kernel."""
    if files[0].is_dir():
        folder = files[0]
        for name in (IMAGE, CONFIG):
            if not (folder / name).is_file():
                raise RequestError(
                    f"{folder}: no kernel, it has no file '{name}'",
                    cure=f"it needs {IMAGE} and {CONFIG}, and may have {SYSTEM_MAP} and {MODULES}",
                )
        found = identity(folder / IMAGE)
        if found is None:
            raise _no_image(folder / IMAGE)
        modules = folder / MODULES
        with os_errors_reported(f"cannot read {modules}"):
            releases = {path.name for path in modules.iterdir()} if modules.is_dir() else set()
        _require_own_modules(str(folder), found, releases)
        return found
    seen = _PackageContents()
    for path in files:
        _look_into(path, seen)
    names = ", ".join(str(path) for path in files)
    if not seen.images:
        raise RequestError(
            f"{names}: no kernel, there is neither boot/vmlinuz-* nor lib/modules/*/vmlinuz in it",
            cure="list the package that has the image, not one that only depends on it; a package of modules "
            "belongs on the line of its kernel",
        )
    if len(seen.images) > 1:
        raise RequestError(
            f"{names}: {len(seen.images)} kernels in one line", cure="write each on a line of its own"
        )
    ((image, head),) = seen.images
    found = identity_in(head)
    if found is None:
        raise _no_image(files[0])
    if not seen.has_config(image):
        places = config_paths(release_of(image))
        raise RequestError(
            f"{names}: no configuration of the kernel, there is neither {' nor '.join(places)} in it",
            cure="list the package that has it on the same line: Ubuntu's linux-modules-"
            f"{release_of(image)}, for one",
        )
    _require_own_modules(names, found, seen.modules)
    return found


def _require_own_modules(names: str, kernel: Identity, releases: Collection[str]) -> None:
    """Raise RequestError where there are modules, and none of this kernel. releases: of those there are."""
    if releases and kernel.release not in releases:
        raise RequestError(
            f"{names}: modules of {', '.join(sorted(releases)[:5])}, and none of the kernel {kernel.release}",
            cure="list the kernel with its own modules, or with none",
        )


def release_of(image: PurePath) -> str:
    """Return the release of a kernel by the path of its image in a package."""
    return image.parent.name if image.name == IMAGE else image.name.removeprefix("vmlinuz-")


def config_paths(release: str) -> tuple[str, str]:
    """Return where a package may have the configuration of a kernel, without a leading usr/."""
    return f"boot/config-{release}", f"{MODULES}/{release}/{CONFIG}"


def _look_into(path: Path, seen: _PackageContents) -> None:
    """Add what a package holds. Where it has an image, it is read no further than that and its configuration.

    Raises RequestError for one that is damaged.
    """
    format_ = format_of(path)
    own: PurePosixPath | None = None
    room = BYTES_MAX
    try:
        with reading_files(path, format_) as members:
            for number, member in enumerate(members, start=1):
                room -= member.size
                if number > MAX_MEMBERS or room < 0:
                    raise RequestError(
                        f"{path}: more than {MAX_MEMBERS} files or {BYTES_MAX >> 30} GiB",
                        cure="look at what wrote it",
                    )
                if own is not None and seen.has_config(own):
                    break
                if not member.isfile():
                    continue
                place = PurePosixPath(member.name)
                if module := _MODULE.fullmatch(str(place)):
                    seen.modules.add(module[1])
                elif place.name.startswith(CONFIG):
                    seen.configs.add(str(place).removeprefix("usr/"))
                if own is None and IMAGE_PATH.fullmatch(str(place)):
                    own = place
                    content = members.extractfile(member)
                    seen.images.append((own, b"" if content is None else content.read(HEAD_BYTES)))
    except (OSError, EOFError, ValueError, tarfile.TarError, zlib.error, lzma.LZMAError) as error:
        raise RequestError(
            f"{path}: a damaged package", details=reason(error), cure="fetch it again"
        ) from error


def reason(error: Exception) -> str:
    """Return what went wrong, without the system's numbers."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def format_of(path: Path) -> Format:
    """Return the format of a package that was read before."""
    format_ = package_format(path)
    assert format_ is not None, "it was read as a package before"
    return format_


def _no_image(path: Path) -> RequestError:
    return RequestError(
        f"{path}: its kernel is no bzImage for x86",
        cure="list kernels for amd64 (RPM: x86_64), which the testbeds boot",
    )
