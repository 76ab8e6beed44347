"""The kernel in packages or in a folder: its files, as the kernel cache keeps them."""

from __future__ import annotations

import gzip
import hashlib
import re
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

from bisector.adapters.packages.kernel_identity import (
    BYTES_MAX,
    CONFIG,
    IMAGE,
    IMAGE_PATH,
    MODULES,
    SYSTEM_MAP,
    config_paths,
    format_of,
    reason,
    release_of,
)
from bisector.adapters.packages.package_file import reading_files
from bisector.adapters.system.archive import (
    ArchiveError,
    bounded_headers,
    pack_tar,
    regular_files,
    unpack_members,
)
from bisector.adapters.system.command import find_program, reading_bytes, run_command
from bisector.adapters.system.files import os_errors_reported, sha256_of, write_error, writing
from bisector.errors import BuildFailed, InfrastructureError

_TREES = re.compile(r"((usr/)?(boot|lib/modules))(/|$)")
"""Parts of a package that are unpacked; its documentation and boot loader entries are not."""

_BLOCK_BYTES = 1 << 20
"""Decompressed at once: modules have some 100 KiB, few have more than 1 MiB."""

_DEPMOD_SECONDS = 300.0
"""It reads every module; 2 s for the 4,000 of a distribution."""

_SYMBOLS_BYTES_MIN = 4096
"""Debian's packages have a System.map of one line, which names the package that has the real one."""

_DECOMPRESS = {".gz": "gzip", ".xz": "xz", ".zst": "zstd"}
"""The programs of the formats in which kernels accept modules (MODULE_COMPRESS)."""


def files_sum(path: Path) -> str:
    """Return the SHA-256 of a package, or of the names and contents of a kernel's folder.

    Raises InfrastructureError if it cannot be read.
    """
    with os_errors_reported(f"cannot read {path}"):
        return sha256_of(path) if path.is_file() else _tree_sum(path, _kept_of_folder(path))


def unpack_kernel(files: Sequence[Path], work: Path) -> Path:
    """Return a folder of artefacts in `work`: image, config; System.map.gz and modules.tar.gz if any.

    Raises BuildFailed for packages that are damaged or hold too much, InfrastructureError for this machine.
    """
    tree, kernel = work / "tree", work / "kernel"
    kernel.mkdir()
    if files[0].is_dir():
        _copy_folder(files[0], tree)
        image, config, symbols = tree / IMAGE, tree / CONFIG, [tree / SYSTEM_MAP]
    else:
        for path in files:
            _unpack_package(path, tree)
        _merge_usr(tree)
        image = _only_image(tree, files)
        release = release_of(image)
        places = config_paths(release)
        found = next((tree / place for place in places if (tree / place).is_file()), None)
        if found is None:
            raise BuildFailed(
                f"the package of {release} has no configuration",
                details=f"it was looked for as {' and '.join(places)}",
            )
        config = found
        symbols = [tree / f"boot/System.map-{release}", tree / f"lib/modules/{release}/{SYSTEM_MAP}"]
    image.rename(kernel / "image")
    config.rename(kernel / "config")
    _keep_symbols(symbols, kernel)
    _pack_modules(tree, kernel)
    shutil.rmtree(tree, ignore_errors=True)
    return kernel


def _only_image(tree: Path, files: Sequence[Path]) -> Path:
    """Return the image among unpacked files. Raises BuildFailed for several: which one was listed?"""
    names = [path.relative_to(tree) for path in regular_files(tree)]
    images = [name for name in names if IMAGE_PATH.fullmatch(str(name))]
    if len(images) != 1:
        packages = ", ".join(path.name for path in files)
        raise BuildFailed(f"{packages} holds {len(images)} kernels", details=", ".join(map(str, images)))
    return tree / images[0]


def _unpack_package(path: Path, tree: Path) -> None:
    try:
        with reading_files(path, format_of(path)) as members:
            unpack_members(
                members, path, tree, max_bytes=BYTES_MAX, wanted=lambda name: bool(_TREES.match(str(name)))
            )
    except ArchiveError as error:
        raise BuildFailed(
            f"the package {path.name} cannot be unpacked", details=str(error.details or error)
        ) from error
    except (tarfile.TarError, EOFError, OSError) as error:
        raise BuildFailed(f"the package {path.name} cannot be unpacked", details=reason(error)) from error


def _merge_usr(tree: Path) -> None:
    """Move usr/lib/modules to lib/modules, where depmod and the rest look for them."""
    for name in ("boot", MODULES):
        merged = tree / "usr" / name
        if merged.is_dir() and not (tree / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            merged.rename(tree / name)


def _kept_of_folder(folder: Path) -> list[Path]:
    """Return the files of a kernel's folder that are kept: no links."""
    modules = [*regular_files(folder / MODULES)] if (folder / MODULES).is_dir() else []
    named = [folder / name for name in (IMAGE, CONFIG, SYSTEM_MAP) if (folder / name).is_file()]
    return [*named, *modules]


def _copy_folder(folder: Path, tree: Path) -> None:
    try:
        for path in _kept_of_folder(folder):
            target = tree / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    except OSError as error:
        raise write_error(tree, error) from error


def _keep_symbols(places: Sequence[Path], kernel: Path) -> None:
    """Keep the first table of symbols that is one, compressed, as builds do. Raises InfrastructureError."""
    target = kernel / f"{SYSTEM_MAP}.gz"
    for path in places:
        if path.is_file() and path.stat().st_size >= _SYMBOLS_BYTES_MIN:
            with (
                writing(target),
                path.open("rb") as plain,
                target.open("wb") as file,
                gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed,  # the same each time
            ):
                shutil.copyfileobj(plain, packed)
            return


def _pack_modules(tree: Path, kernel: Path) -> None:
    """Pack the modules, with the list of what each needs: packages leave it to their installation."""
    releases = (
        [path.name for path in (tree / MODULES).iterdir() if path.is_dir()]
        if (tree / MODULES).is_dir()
        else []
    )
    if not any(regular_files(tree / MODULES / release / "kernel") for release in releases):
        return
    depmod = find_program("depmod")
    if depmod is None:
        raise InfrastructureError(
            "'depmod', which lists what the modules of a kernel need, is not installed",
            cure="apt-get install kmod",
        )
    for release in releases:
        _decompress_modules(tree / MODULES / release)
        run_command([depmod, "-b", tree, release], timeout=_DEPMOD_SECONDS)
    packed = tree / "packed"
    packed.mkdir()
    (tree / "lib").rename(packed / "lib")
    try:
        pack_tar(packed, kernel / "modules.tar.gz", compressed=True)
    except OSError as error:
        raise write_error(kernel, error) from error


def _decompress_modules(folder: Path) -> None:
    """Write each module as it is loaded: not every kernel can decompress its own. Raises BuildFailed."""
    room = BYTES_MAX
    for path in [path for path in regular_files(folder) if path.suffix in _DECOMPRESS]:
        if find_program(_DECOMPRESS[path.suffix]) is None:
            raise InfrastructureError(
                f"'{_DECOMPRESS[path.suffix]}', which decompresses modules, is not installed",
                cure="apt-get install gzip xz-utils zstd",
            )
        size = _decompress(path, room)
        room -= size
        if room < 0 or not size:
            what = "cannot be decompressed" if not size else f"are larger than {BYTES_MAX >> 30} GiB"
            raise BuildFailed(f"the modules of {folder.name} {what}", details=path.name)
        path.unlink()


def _decompress(path: Path, room: int) -> int:
    """Write a file beside it, decompressed; return its bytes, with more than `room` not all of them.

    Returns 0 for one that is damaged. Raises InfrastructureError.
    """
    target, size = path.with_suffix(""), 0
    try:
        with (
            reading_bytes([_DECOMPRESS[path.suffix], "-dcq", path]) as stream,
            writing(target),
            target.open("wb") as file,
        ):
            while size <= room and (block := stream.read(_BLOCK_BYTES)):
                size += len(block)
                file.write(block)
    except OSError:
        return 0
    return size


def modules_sum(kernel: Path) -> str:
    """Return a checksum of what the archive of modules holds, '' if there is none."""
    archive = kernel / "modules.tar.gz"
    if not archive.is_file():
        return ""
    found = hashlib.sha256()
    with tarfile.open(archive, tarinfo=bounded_headers()) as members:
        for member in members:
            content = members.extractfile(member)
            if content is not None:
                digest = hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type]
                found.update(f"{member.name}\0{digest}\n".encode())
    return found.hexdigest()


def _tree_sum(folder: Path, files: Sequence[Path]) -> str:
    lines = (f"{path.relative_to(folder)}\0{sha256_of(path)}\n" for path in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
