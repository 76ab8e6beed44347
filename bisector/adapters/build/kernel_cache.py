"""Finished kernels on disk, by content: `<folder>/<key>/` with image, config, build.log and kernel.json.

An entry appears whole or not at all (written beside, then renamed), so a killed process leaves no half kernel
and a finished build is never repeated. One that was damaged since is none: where a
kernel does not boot because its image lost a bit, its commit would be blamed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bisector.adapters.build.build_answer import number_of, numbers_are_numbers
from bisector.adapters.system.archive import ArchiveError, read_compressed
from bisector.adapters.system.disk_usage import disk_usage, remove, used_at
from bisector.adapters.system.files import (
    exclusive_lock,
    publish_folder,
    sha256_of,
    write_atomically,
    writing,
)
from bisector.adapters.system.leftovers import make_temporary_folder
from bisector.errors import DamagedArtefact, InfrastructureError
from bisector.ports import Progress
from bisector.schemas.documents.json_reader import read_own_json
from bisector.schemas.kernel.recipe import effective_options

_FACTS = "kernel.json"
_NEEDED_FACTS = ("binary", "release")  # a build id may be empty: no image tells its own

_CHECKSUM = "sha256."
"""Prefix of a fact that holds the checksum of a file: `sha256.NAME`. Entries of earlier versions get theirs
at first use; until then only the size of the image shows whether they are complete."""

_FORMAT = 2
"""Part of every key; raised when the way kernels are built changes what comes out."""

WORKSPACE_PREFIX = "building-"
"""Of the folders beside the kernels of the cache in which a build's result is unpacked."""

_SOURCES_BYTES_MAX = 64 << 20
"""Paths of all files of a kernel, 80,000 of 40 characters each, many times over."""


def kernel_key(tree: str, plan: str, toolchain: str) -> str:
    """Return what names a kernel (64 hex digits): everything that can change it, and nothing else.

    tree: with patches and fixups in it; plan: `BuildPlan.digest`; toolchain: what its programs say they are.
    """
    parts = [str(_FORMAT), tree, plan, toolchain]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class CachedKernel:
    """One kernel of the cache. facts: as the builder reported (release, build_id, binary, sizes, seconds)."""

    key: str
    folder: Path
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def image(self) -> Path:
        """What boots."""
        return self.folder / "image"

    @property
    def config(self) -> Path:
        """The effective .config."""
        return self.folder / "config"

    @property
    def modules(self) -> Path | None:
        """The modules as 'make modules_install' lays them out, in one archive; None if it has none."""
        path = self.folder / "modules.tar.gz"
        return path if path.is_file() else None

    @property
    def log(self) -> Path:
        """The output of the whole build."""
        return self.folder / "build.log"

    def sources(self) -> frozenset[str] | None:
        """Return the files that the build read: paths in the tree, behind './' what it made itself.

        None for a kernel whose build did not tell.
        """
        try:
            text = read_compressed(self.folder / "sources.gz", _SOURCES_BYTES_MAX)
        except ArchiveError:
            return None
        read = frozenset(text.decode("utf-8", "surrogateescape").split("\n"))
        # Every kernel compiles C files. A list without any is damaged; believing it would make all commits
        # look irrelevant.
        return read - {""} if any(path.endswith(".c") for path in read) else None

    def options(self) -> dict[str, str]:
        """Return the effective configuration, NAME -> value."""
        return effective_options(self.config.read_text(encoding="utf-8", errors="replace"))


@dataclass(frozen=True, slots=True)
class KernelCache:
    """A folder of kernels."""

    folder: Path

    def get(self, key: str) -> CachedKernel | None:
        """Return an entry and note that it was used; None if there is none, or it is damaged."""
        entry = self._read(key)
        if entry is None or not _is_whole(entry):
            return None
        with contextlib.suppress(OSError, InfrastructureError):  # what cannot be written can still be read
            os.utime(entry.folder)
            if not any(name.startswith(_CHECKSUM) for name in entry.facts):
                _write_facts(entry.folder, entry.facts)
        return entry

    @contextlib.contextmanager
    def making(self, key: str, progress: Progress, stop: Callable[[], bool]) -> Iterator[None]:
        """Let one process at a time make an entry; report when another one does. Raises Interrupted."""
        # Named after two digits, so that there are at most 256 files: others seldom wait for nothing.
        path = self.folder / "making" / key[:2]
        with exclusive_lock(path, lambda: progress("another process builds this kernel"), stop):
            yield

    def put(self, key: str, artefacts: Path, facts: Mapping[str, str]) -> CachedKernel:
        """Move a folder of artefacts (on the same file system) into the cache as the entry `key`.

        A whole one that is there stays: another process may read it.
        """
        known = self.get(key)
        if known is not None:
            return known
        with writing(self.folder):
            _write_facts(artefacts, facts)
            target = self.folder / key
            if target.exists():
                shutil.rmtree(target, ignore_errors=True)
            publish_folder(artefacts, target)
        return CachedKernel(key, target, dict(facts))

    def receive(self, key: str, folder: Path) -> CachedKernel:
        """Move what is an entry of another host's cache into this one. Raises DamagedArtefact."""
        entry = self._read(key, folder)
        if entry is None or not _is_whole(entry) or not _is_all_summed(entry):
            raise DamagedArtefact(f"what came as the kernel {key} is none, so it is built")
        try:
            publish_folder(folder, self.folder / key)
        except OSError:  # another process has fetched it meanwhile, or what is there is damaged
            return self.put(key, folder, entry.facts)
        return CachedKernel(key, self.folder / key, entry.facts)

    def make_workspace(self) -> Path:
        """Make a folder on the cache's file system, so that a finished kernel is moved in by a rename."""
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            return make_temporary_folder(WORKSPACE_PREFIX, self.folder)

    def keep_log(self, key: str, log: Path) -> Path:
        """Keep the log of a failed build and return where it is."""
        target = self.folder / "failed" / f"{key}.log"
        with writing(self.folder):
            target.parent.mkdir(parents=True, exist_ok=True)
            log.replace(target)
        return target

    def entries(self) -> list[CachedKernel]:
        """Return all entries, the least recently used first."""
        found = [(used_at(path), path.name) for path in self.folder.glob("*") if _is_key(path.name)]
        return [entry for _, name in sorted(found) if (entry := self._read(name)) is not None]

    def most_compiled(self, recipe: str) -> int:
        """Return how many files a recipe's largest build compiled: one from nothing; 0 if unknown."""
        facts = (entry.facts for entry in self.entries())
        return max((int(number_of(f, "compiled")) for f in facts if f.get("recipe") == recipe), default=0)

    def inventory(self) -> dict[str, Any]:
        """Return what is there, the latest used first, as JSON holds it."""
        found = [(entry, disk_usage(entry.folder)) for entry in reversed(self.entries())]
        latest = max((e.facts for e, _ in found), key=lambda f: number_of(f, "misses"), default={})
        return {
            "folder": str(self.folder),
            "bytes": sum(size for _, size in found),
            # The compiler cache counts since its beginning; the largest count is the latest.
            "ccache": {name: int(number_of(latest, name)) for name in ("hits", "misses")},
            "kernels": [
                {
                    "key": entry.key,
                    "sha": entry.facts.get("sha", ""),
                    "recipe": entry.facts.get("recipe", ""),
                    "layout": int(number_of(entry.facts, "layout")),
                    "release": entry.facts.get("release", ""),
                    "binary": entry.facts.get("binary", ""),
                    "toolchain": entry.facts.get("toolchain", ""),
                    "seconds": number_of(entry.facts, "seconds"),
                    "bytes": size,
                }
                for entry, size in found
            ],
        }

    def failed_logs(self) -> list[Path]:
        """Return the logs of failed builds."""
        return list((self.folder / "failed").glob("*.log"))

    def drop_logs(self) -> int:
        """Remove the logs of failed builds; return the number of bytes freed."""
        logs = self.failed_logs()
        freed = disk_usage(*logs)
        for log in logs:
            log.unlink(missing_ok=True)
        return freed

    def shrink(self, limit_bytes: int, keep: Callable[[], Container[str]]) -> int:
        """Remove the least recently used entries, none in `keep`, until at most `limit_bytes` are taken.

        keep: asked where something is to be removed. Returns the number of bytes freed.
        """
        sizes = [(entry, disk_usage(entry.folder)) for entry in self.entries()]
        excess, freed = sum(size for _, size in sizes) - limit_bytes, 0
        if excess <= 0:
            return 0
        kept = keep()
        for entry, size in sizes:
            if freed >= excess:
                break
            if entry.key not in kept:
                remove(entry.folder)
                freed += size
        return freed

    def _read(self, key: str, folder: Path | None = None) -> CachedKernel | None:
        folder = folder or self.folder / key
        facts = read_own_json(folder / _FACTS)
        if facts is None or not all(isinstance(value, str) for value in facts.values()):
            return None
        return CachedKernel(key, folder, facts)


def _write_facts(folder: Path, facts: Mapping[str, str]) -> None:
    """Write the facts of an entry with the checksums of its files."""
    known = {**facts, **{_CHECKSUM + name: sha256_of(folder / name) for name in _files(folder)}}
    write_atomically(folder / _FACTS, json.dumps(known, indent=1, sort_keys=True))


def _is_whole(entry: CachedKernel) -> bool:
    """Return whether an entry has its image, configuration and facts, each file as it was written."""
    needed = all(map(entry.facts.get, _NEEDED_FACTS)) and "build_id" in entry.facts
    if not needed or not numbers_are_numbers(entry.facts):
        return False
    checksums = _checksums(entry)
    try:
        # Only files of the folder are read: names come from other hosts, and may be paths such as /dev/zero.
        if not {entry.image.name, entry.config.name, *checksums} <= _files(entry.folder):
            return False
        size = str(entry.image.stat().st_size)
        return entry.facts.get("image", size) == size and all(
            sha256_of(entry.folder / name) == checksum for name, checksum in checksums.items()
        )
    except OSError:
        return False


def _is_all_summed(entry: CachedKernel) -> bool:
    """Return whether an entry has nothing but files with a checksum, beside its facts."""
    return {path.name for path in entry.folder.iterdir()} == {_FACTS, *_checksums(entry)}


def _checksums(entry: CachedKernel) -> dict[str, str]:
    """Return the checksums by the names of files, as the entry says them."""
    return {n.removeprefix(_CHECKSUM): v for n, v in entry.facts.items() if n.startswith(_CHECKSUM)}


def _files(folder: Path) -> set[str]:
    """Return the names of a folder's regular files, without that of the facts."""
    return {path.name for path in folder.iterdir() if path.is_file() and not path.is_symlink()} - {_FACTS}


def _is_key(name: str) -> bool:
    return len(name) == 64 and all(c in "0123456789abcdef" for c in name)


def parse_facts(output: str) -> dict[str, str]:
    """Read the 'key=value' lines that the builder's scripts print."""
    pairs = (line.split("=", 1) for line in output.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, value in pairs}
