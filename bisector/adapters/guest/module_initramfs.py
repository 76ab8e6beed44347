"""The initramfs of a guest whose kernel has its drivers as modules: those that its root file system needs.

Built on this machine for each kernel from the archive of its modules: the ones that the recipe names and what
they depend on, by the kernel's own modules.dep, in the order in which they must be loaded. What is built into
the kernel is left out.
"""

from __future__ import annotations

import stat
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bisector.adapters.guest.cpio import ArchiveEntry, cpio, file, folder
from bisector.adapters.guest.static_program import compile_static
from bisector.adapters.system.architectures import Machine
from bisector.adapters.system.archive import bounded_headers
from bisector.errors import InfrastructureError

_LIST = "perfbisect.modules"
"""The file that lists the modules for the first process, in the order of loading; see its source."""


_MODULE_BYTES_MAX = 256 << 20
"""Of one file: the largest module, a graphics driver with debug information, has some ten MiB."""


def module_initramfs(modules: Path, load: Sequence[str], cache: Path, machine: Machine) -> bytes:
    """Return the archive. modules: of `Kernel.modules`; load: names. Raises InfrastructureError."""
    try:
        with tarfile.open(modules, tarinfo=bounded_headers()) as archive:
            files = {member.name.removeprefix("./"): member for member in archive if member.isfile()}
            listed = next((name for name in files if name.endswith("/modules.dep")), None)
            if listed is None:
                raise InfrastructureError(
                    f"{modules} has no modules.dep: depmod did not run where the kernel was built",
                    cure="install kmod on the builder, and build the kernel anew",
                )
            place = listed.removesuffix("modules.dep")
            needs = dependencies(_read(archive, files[listed]).decode("utf-8", "replace"))
            paths = [f"{place}{path}" for path in in_order(needs, load)]
            data = {path: _read(archive, files[path]) for path in paths}
    except (OSError, EOFError, KeyError, tarfile.TarError) as error:
        raise InfrastructureError(f"the modules in {modules} cannot be read: {error}") from error
    parents = {str(parent) for path in paths for parent in Path(path).parents if str(parent) != "."}
    return cpio(
        [
            *(folder(name) for name in ("dev", "proc", "root", *sorted(parents))),
            ArchiveEntry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1)),
            file("init", compile_static("module_init.c", cache, machine), executable=True),
            file(_LIST, "".join(f"/{path}\n" for path in paths).encode()),
            *(file(path, data[path]) for path in paths),
        ]
    )


def dependencies(text: str) -> Mapping[str, tuple[str, ...]]:
    """Read modules.dep: path -> the paths that it needs, all of them, the nearest first."""
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
    return {path.strip(): tuple(rest.split()) for path, _, rest in pairs}


def in_order(needs: Mapping[str, Sequence[str]], names: Sequence[str]) -> list[str]:
    """Return the paths of modules and of what they need, each behind what it needs; unknown names are left.

    Names are as `modprobe` takes them: '-' and '_' are the same.
    """
    by_name = {_name(path): path for path in needs}
    ordered: dict[str, None] = {}
    for name in names:
        path = by_name.get(name.replace("-", "_"))
        if path is not None:
            # depmod writes what must be loaded first last (kmod, depmod.c: dependencies are sorted by that).
            ordered.update(dict.fromkeys((*reversed(needs[path]), path)))
    return list(ordered)


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1].split(".ko", 1)[0].replace("-", "_")


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    if member.size > _MODULE_BYTES_MAX:
        raise tarfile.TarError(f"{member.name} has {member.size >> 20} MiB")
    file = archive.extractfile(member)
    assert file is not None, member.name
    return file.read()
