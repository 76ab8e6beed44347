"""Debian's own kernels, unpacked from their packages: nothing is compiled for the machines of the lab."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.system.command import run_command
from bisector.adapters.system.files import exclusive_lock, publish_folder
from bisector.errors import InfrastructureError

DEFAULT_PACKAGE = "linux-image-cloud-amd64"
"""Has NVMe, ext4 and kexec built in, so it boots from a disk without an initramfs."""

_DOWNLOAD_SECONDS = 600.0
"""30 MB over a slow line."""


@dataclass(frozen=True, slots=True)
class DebianKernel:
    """An unpacked kernel package. tree: as it would lie below /, with /boot and /lib/modules."""

    package: str
    version: str
    tree: Path

    @property
    def image(self) -> Path:
        return self.tree / "boot" / f"vmlinuz-{self.version}"

    @property
    def config(self) -> Path:
        return self.tree / "boot" / f"config-{self.version}"

    @property
    def modules(self) -> Path:
        return self.tree / "lib" / "modules" / self.version

    def copy_modules(self, names: Iterable[str], target: Path) -> None:
        """Copy these modules, and what they need, below target/lib/modules; those built in need nothing."""
        needs = dict(
            line.split(":", 1) for line in (self.modules / "modules.dep").read_text().splitlines() if line
        )
        paths = {Path(path).name.split(".")[0].replace("-", "_"): path for path in needs}
        wanted = [paths[name] for name in names if name in paths]
        for path in {*wanted, *(need for one in wanted for need in needs[one].split())}:
            copy = target / "lib" / "modules" / self.version / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.modules / path, copy)
        folder = target / "lib" / "modules" / self.version
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("modules.builtin", "modules.order"):
            shutil.copy(self.modules / name, folder)
        run_command(["depmod", "-b", target, self.version])


def resolve(package: str) -> str:
    """Return the package that a meta-package such as linux-image-cloud-amd64 stands for now."""
    if re.match(r"linux-image-\d+\.\d+\.\d+", package):
        return package
    found = re.search(r"Depends: (linux-image-\S+)", _apt_cache("depends", package))
    if found is None:
        raise InfrastructureError(f"apt knows no kernel package '{package}'", cure="run 'apt-get update'")
    return found.group(1)


def available(pattern: str) -> list[str]:
    """Return the kernel packages whose names match the expression, the lowest version first."""
    names = _apt_cache("pkgnames", "linux-image-").split()
    packages = [name for name in names if re.search(pattern, name)]
    if not packages:
        raise InfrastructureError(f"apt knows no kernel package '{pattern}'", cure="run 'apt-get update'")
    return sorted(packages, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])


def _apt_cache(*query: str) -> str:
    """Return what apt knows of packages. A fresh machine may know none: apt is told to look, then."""
    known = run_command(["apt-cache", *query], check=False)
    if known.code == 0 and known.output:
        return known.output
    run_command(["apt-get", "update"], timeout=_DOWNLOAD_SECONDS)
    return run_command(["apt-cache", *query]).output


def newest(pattern: str) -> str:
    """Return the kernel package of the highest version whose name matches the expression."""
    return available(pattern)[-1]


def unpack(package: str, cache: Path) -> DebianKernel:
    """Return the kernel of a package, downloaded at most once. Raises InfrastructureError."""
    name = resolve(package)
    final = cache / "kernels" / name
    if not final.is_dir():
        final.parent.mkdir(parents=True, exist_ok=True)
        with (
            exclusive_lock(cache / "kernels" / ".lock"),
            tempfile.TemporaryDirectory(prefix=".partial-", dir=final.parent) as folder,
        ):
            if not final.is_dir():
                _download(name, Path(folder), final)
    version = next((final / "lib" / "modules").iterdir()).name
    return DebianKernel(name, version, final)


def _download(name: str, folder: Path, final: Path) -> None:
    folder.chmod(0o777)  # apt downloads as a user of its own
    run_command(["apt-get", "download", name], cwd=folder, timeout=_DOWNLOAD_SECONDS)
    (archive,) = folder.glob("*.deb")
    tree = folder / "tree"
    run_command(["dpkg-deb", "-x", archive, tree])
    for part in ("usr",):
        shutil.rmtree(tree / part, ignore_errors=True)
    (version,) = (tree / "lib" / "modules").iterdir()
    run_command(["depmod", "-b", tree, version.name])
    publish_folder(tree, final)
