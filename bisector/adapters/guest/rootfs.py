"""The root file system of guests: Debian packages, our init, SSH keys. Built once, never written to.

`GuestImages.ensure` returns the image of this version of its ingredients, building it if it is not there.
Packages come from wherever this machine's apt gets its own; the image is one raw ext2 file that every guest
attaches read-only, so its checksum says that two boots had the same user space.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.artefacts.exchange import Exchange
from bisector.adapters.guest.debian_packages import PACKAGES, bootstrap, remove_made, root_namespace
from bisector.adapters.guest.static_program import SOURCES, compile_static
from bisector.adapters.system.architectures import X86_64
from bisector.adapters.system.command import find_program, run_command
from bisector.adapters.system.files import (
    exclusive_lock,
    os_errors_reported,
    publish_folder,
    sha256_of,
    write_file,
)
from bisector.adapters.system.host_requirements import install
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.errors import DamagedArtefact, InfrastructureError
from bisector.model.artefacts import Artefact
from bisector.ports import Progress
from bisector.schemas.documents.json_reader import read_own_json

_FILES = ("customize.sh", "init.c", "sshd_config")
_LAYOUT = 1
"""Raised when the way of building changes, so that images of the old way are not taken for new ones."""


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

    packages: what a workload requires beside `PACKAGES`; each set is an image of its own. exchange: images
    that other hosts have built are taken from there, and those from here given.
    """

    def __init__(self, cache: Path, packages: Sequence[str] = (), exchange: Exchange | None = None) -> None:
        self._cache, self._folder, self._exchange = cache, cache / "images", exchange
        self._packages = (*PACKAGES, *sorted(set(packages) - set(PACKAGES)))

    def present(self) -> GuestImage | None:
        """Return the image if it has been built already, and note that it was used."""
        folder = self._folder / _key(self._packages)
        with contextlib.suppress(OSError):  # not there, or in a cache that can only be read
            os.utime(folder)
        return _load(folder)

    def ensure(self, progress: Progress) -> GuestImage:
        """Return the image, fetched or built if needed (one to ten minutes).

        Raises InfrastructureError: no namespace to be root in, a missing tool, no network, no space left.
        """
        image = self.present() or self._fetch(progress) or self._make(progress)
        if self._exchange is not None:
            self._exchange.offer(self._artefact, image.disk.parent)
        return image

    @property
    def _artefact(self) -> Artefact:
        return Artefact("image", _key(self._packages))

    def _fetch(self, progress: Progress) -> GuestImage | None:
        """Take the image that another host has built."""
        final = self._folder / self._artefact.key

        def take(folder: Path) -> None:
            image = _load(folder)
            if image is None or sha256_of(image.disk) != image.checksum:
                raise DamagedArtefact("what came as the guest image is none, so it is built")
            image.key.chmod(0o600)
            image.disk.chmod(0o444)
            with exclusive_lock(self._folder / ".lock"):
                if _load(final) is None:
                    shutil.rmtree(final, ignore_errors=True)
                    publish_folder(folder, final)

        if self._exchange is None:
            return None
        progress("looking for the guest image in the artefact store")
        with os_errors_reported(f"cannot put a guest image into {self._folder}"):
            self._exchange.fetch(self._artefact, self._folder, take)
        return self.present()

    def _make(self, progress: Progress) -> GuestImage:
        packages = {"mmdebstrap": "mmdebstrap", "mke2fs": "e2fsprogs", "ssh-keygen": "openssh-client"}
        for tool, package in packages.items():
            if find_program(tool) is None:
                raise InfrastructureError(f"'{tool}' is not installed", cure=install(package))
        root_namespace()  # or it says what is missing
        what = f"cannot build the guest image in {self._folder}"
        with os_errors_reported(what, cure="it needs about 500 MB there"):
            self._folder.mkdir(parents=True, exist_ok=True)
            with exclusive_lock(self._folder / ".lock"):
                image = self.present()  # another process may have built it while we waited
                return image if image is not None else self._build(progress)

    def _build(self, progress: Progress) -> GuestImage:
        for leftover in self._folder.glob(".partial-*"):  # of a killed process: we hold the lock
            remove_made(leftover)
        with tempfile.TemporaryDirectory(prefix=".partial-", dir=self._folder) as folder:
            work = Path(folder)
            progress("building the guest image from Debian packages (once)")
            files = work / "files"
            files.mkdir()
            for name, comment in (("host_key", "guest"), ("client_key", "perfbisect")):
                run_command(
                    ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", files / name]
                )
            shutil.copy(SOURCES / "sshd_config", files)
            (files / "init").write_bytes(compile_static("init.c", self._cache, X86_64))
            (files / "init").chmod(0o755)
            disk = work / "root.ext2"
            disk.touch()
            hook = f"--customize-hook=sh '{SOURCES / 'customize.sh'}' \"$1\" '{files}' '{disk}'"
            bootstrap(files, self._packages, Path("/dev/null"), "--format=null", hook)
            progress("computing the guest image's checksum")
            checksum = sha256_of(disk)
            host_key = " ".join((files / "host_key.pub").read_text(encoding="ascii").split()[:2])
            about = {"checksum": checksum, "host_key": host_key, "packages": list(self._packages)}
            shutil.copy(files / "client_key", work / "client_key")
            (work / "client_key").chmod(0o600)
            (work / "image.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
            shutil.rmtree(files)
            disk.chmod(0o444)
            work.chmod(0o755)
            final = self._folder / _key(self._packages)
            shutil.rmtree(final, ignore_errors=True)  # one that `_load` found unusable
            publish_folder(work, final)
            work.mkdir()  # for TemporaryDirectory to remove
        image = _load(final)
        if image is None:
            raise InfrastructureError(f"the guest image in {final} cannot be read back")
        return image


def _key(packages: Sequence[str]) -> str:
    """Return the name of the folder that holds what these ingredients give."""
    digest = hashlib.sha256(f"{_LAYOUT} {' '.join(packages)}".encode())
    for name in _FILES:
        digest.update((SOURCES / name).read_bytes())
    return digest.hexdigest()[:16]


def kept_images(cache: Path) -> list[GuestImage]:
    """Return all images of a cache folder, those of other versions too; the folder's time is the last use."""
    return [image for path in (cache / "images").glob("[!.]*/") if (image := _load(path)) is not None]


def _load(folder: Path) -> GuestImage | None:
    about = read_own_json(folder / "image.json", ("host_key", "checksum"))
    if about is None or not all(isinstance(about[key], str) for key in ("host_key", "checksum")):
        return None
    image = GuestImage(folder / "root.ext2", folder / "client_key", about["host_key"], about["checksum"])
    return image if image.disk.is_file() and image.key.is_file() else None
