"""The root file system of guests: Debian packages, an own init, SSH keys; built once and never written to.

`GuestImages.ensure` returns the image of this version of its ingredients, building it if it is not there.
Packages come from wherever this machine's apt gets its own; the image is one raw ext2 file that every guest
attaches read-only, so its checksum says that two boots had the same user space.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.system.architectures import X86_64
from bisector.adapters.system.command import run_command
from bisector.adapters.system.files import exclusive_lock, write_file
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.errors import InfrastructureError, RequestError
from bisector.ports import Progress

PACKAGES = ("openssh-server", "python3", "iproute2", "procps")
"""In every guest beside the essential packages: a way in, Ansible's interpreter, tools for workloads."""

_INGREDIENTS = Path(__file__).parent / "files"
_FILES = ("customize.sh", "init.c", "sshd_config")
_LAYOUT = 1
"""Raised when the way of building changes, so that images of the old way are not taken for new ones."""

_BUILD_SECONDS = 1800.0
"""Downloads 40 MB and configures 150 packages: 30 s on an idle machine, minutes on a busy one."""

_UPDATE_SECONDS = 300.0

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class GuestImage:
    """A finished image. host_key: its public host key as 'type base64'; checksum: sha256 of the disk."""

    disk: Path
    key: Path
    host_key: str
    checksum: str

    def ssh_host(self, address: str, port: int, folder: Path) -> SSHHost:
        """Return the way in to a guest of this image, whose host key is pinned by a file in `folder`."""
        known_hosts = folder / "known_hosts"
        write_file(known_hosts, f"[{address}]:{port} {self.host_key}\n".encode("ascii"))
        return SSHHost(address, port, "root", self.key.absolute(), known_hosts)


class GuestImages:
    """The images of one cache folder, which may be shared by several processes.

    packages: what a workload requires beside `PACKAGES`; each set of packages is an image of its own.
    """

    def __init__(self, cache: Path, packages: Sequence[str] = ()) -> None:
        self._folder = cache / "images"
        self._packages = (*PACKAGES, *sorted(set(packages) - set(PACKAGES)))

    def present(self) -> GuestImage | None:
        """Return the image if it has been built already."""
        return _load(self._folder / _key(self._packages))

    def ensure(self, progress: Progress) -> GuestImage:
        """Return the image, built if needed (as root, one to ten minutes).

        Raises InfrastructureError: not root, a missing tool, no network, no space left.
        """
        image = self.present()
        if image is not None:
            return image
        for tool, package in (
            ("mmdebstrap", "mmdebstrap"),
            ("mke2fs", "e2fsprogs"),
            ("ssh-keygen", "openssh-client"),
        ):
            if shutil.which(tool) is None:
                raise InfrastructureError(f"'{tool}' is not installed", cure=f"apt-get install {package}")
        if os.geteuid() != 0:
            raise InfrastructureError(
                "building the guest image needs root, once",
                cure="run 'perfbisect doctor' as root with the same cache folder (PERFBISECT_CACHE_DIR)",
            )
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with exclusive_lock(self._folder / ".lock"):
                image = self.present()  # another process may have built it while we waited
                return image if image is not None else self._build(progress)
        except OSError as error:
            raise InfrastructureError(
                f"cannot build the guest image in {self._folder}: {error.strerror}",
                cure="it needs about 500 MB there",
            ) from error

    def _build(self, progress: Progress) -> GuestImage:
        for leftover in self._folder.glob(".partial-*"):  # of a killed process: we hold the lock
            shutil.rmtree(leftover, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=".partial-", dir=self._folder) as name:
            work = Path(name)
            progress("building the guest image from Debian packages (once)")
            files = work / "files"
            files.mkdir()
            _keys(files)
            shutil.copy(_INGREDIENTS / "sshd_config", files)
            source, program = str(_INGREDIENTS / "init.c"), str(files / "init")
            run_command([*X86_64.compiler(), "-Os", "-Wall", "-o", program, source], timeout=120.0)
            disk = work / "root.ext2"
            disk.touch()
            _debootstrap(work, files, disk, self._packages)
            progress("computing the guest image's checksum")
            host_key = " ".join((files / "host_key.pub").read_text(encoding="ascii").split()[:2])
            about = {"checksum": _checksum(disk), "host_key": host_key, "packages": list(self._packages)}
            shutil.copy(files / "client_key", work / "client_key")
            (work / "client_key").chmod(0o600)
            (work / "image.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
            shutil.rmtree(files)
            disk.chmod(0o444)
            work.chmod(0o755)
            final = self._folder / _key(self._packages)
            shutil.rmtree(final, ignore_errors=True)  # one that `_load` found unusable
            work.rename(final)
            work.mkdir()  # for TemporaryDirectory to remove
        image = _load(final)
        if image is None:
            raise InfrastructureError(f"the guest image in {final} cannot be read back")
        return image


def _debootstrap(work: Path, files: Path, disk: Path, packages: Sequence[str]) -> None:
    customize = " ".join(
        f"'{part}'" for part in (str(_INGREDIENTS / "customize.sh"), "ROOT", str(files), str(disk))
    ).replace("'ROOT'", '"$1"')
    bootstrap(work, packages, Path("/dev/null"), "--format=null", f"--customize-hook=sh {customize}")


def bootstrap(work: Path, packages: Sequence[str], target: Path, *options: str) -> None:
    """Make a small Debian with these packages of this machine's own archives. options: of mmdebstrap.

    work: a folder for what apt is told. Raises InfrastructureError.
    """
    listed = _lists()
    if not listed.strip():  # a fresh machine or container has no lists yet
        run_command(["apt-get", "update"], timeout=_UPDATE_SECONDS)
        listed = _lists()
    suite, sources = apt_sources(listed)
    (work / "sources.list").write_text("".join(f"{line}\n" for line in sources), encoding="utf-8")
    (work / "apt.conf").write_text(
        apt_options(run_command(["apt-config", "dump", "Acquire"]).output), encoding="utf-8"
    )
    run_command(
        [
            "mmdebstrap",
            "--mode=root",
            "--variant=essential",
            f"--include={','.join(packages)}",
            "--aptopt=Apt::Install-Recommends false",
            f"--aptopt={work / 'apt.conf'}",
            *(f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("man", "doc", "info", "locale")),
            *options,
            suite,
            str(target),
            str(work / "sources.list"),
        ],
        timeout=_BUILD_SECONDS,
    )


def check_packages(packages: Sequence[str]) -> None:
    """Raise RequestError for packages that no archive of this machine has; where apt knows nothing, never.

    Without lists it still knows what is installed, so that alone says nothing of the rest.
    """
    if not packages or shutil.which("apt-cache") is None or not _lists().strip():
        return
    known = set(_KNOWN.findall(run_command(["apt-cache", "policy", *packages, *PACKAGES]).output))
    missing = [name for name in packages if name not in known]
    if missing and known & set(PACKAGES):
        raise RequestError(
            f"no archive of this machine has the package '{missing[0]}', which a guest would need",
            details=f"missing: {', '.join(missing)}; required: {', '.join(packages)}",
            cure="mend 'requires: packages' in the workload's manifest, or run 'apt-get update'",
        )


_KNOWN = re.compile(r"^(\S+):\n(?:  .*\n)??  Candidate: (?!\(none\))", re.MULTILINE)
"""In what 'apt-cache policy' prints: a name, and a version that can be installed."""

_TARGET = "$(ORIGIN)|$(SUITE)|$(CODENAME)|$(REPO_URI)|$(COMPONENT)|$(SIGNED_BY)"


def _lists() -> str:
    """Return apt's own list of the indexes that it has, a line each as `_TARGET` says."""
    return run_command(["apt-get", "indextargets", "--format", _TARGET, "Created-By: Packages"]).output


def apt_sources(targets: str) -> tuple[str, Sequence[str]]:
    """Return (suite, lines for sources.list) from apt's own list of indexes, written as `_TARGET` says.

    Only the distribution's own archives are taken (origin Debian or Ubuntu, no backports): what else this
    machine has is nothing that a guest needs. Raises InfrastructureError when there is none.
    """
    suites: dict[str, None] = {}
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for line in targets.splitlines():
        origin, _, codename, uri, component, signed = (*line.split("|"), "", "", "", "", "", "")[:6]
        if origin not in ("Debian", "Ubuntu") or "backports" in codename:
            continue
        options = f"[signed-by={signed}] " if signed.startswith("/") else ""
        suites[codename] = None
        found.setdefault((options, uri, codename), {})[component] = None
    if not found:
        raise InfrastructureError(
            "apt knows no archive of Debian or Ubuntu to build the guest image from",
            details=targets[:500],
            cure="run 'apt-get update', and look at /etc/apt/sources.list and sources.list.d",
        )
    base = min(suites, key=len)  # 'bookworm' rather than 'bookworm-security'
    lines = [
        f"deb {options}{uri} {codename} {' '.join(parts)}"
        for (options, uri, codename), parts in found.items()
    ]
    return base, lines


def apt_options(dump: str) -> str:
    """Return those lines of `apt-config dump Acquire` that say how this machine reaches its archives."""
    wanted = ("Acquire::http", "Acquire::https", "Acquire::ftp", "Acquire::Retries", "Acquire::Force")
    lines = [
        line for line in dump.splitlines() if line.startswith(wanted) and not line.rstrip().endswith('"";')
    ]
    return "".join(f"{line}\n" for line in lines) or "# nothing special\n"


def _keys(folder: Path) -> None:
    for name, comment in (("host_key", "guest"), ("client_key", "perfbisect")):
        run_command(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", folder / name])


def _key(packages: Sequence[str]) -> str:
    """Return the name of the folder that holds what these ingredients give."""
    digest = hashlib.sha256(f"{_LAYOUT} {' '.join(packages)}".encode())
    for name in _FILES:
        digest.update((_INGREDIENTS / name).read_bytes())
    return digest.hexdigest()[:16]


def _load(folder: Path) -> GuestImage | None:
    try:
        about = json.loads((folder / "image.json").read_text(encoding="utf-8"))
        image = GuestImage(folder / "root.ext2", folder / "client_key", about["host_key"], about["checksum"])
    except (OSError, ValueError, KeyError):
        return None
    return image if image.disk.is_file() and image.key.is_file() else None


def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
