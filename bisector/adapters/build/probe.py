"""The tools of a builder, asked by `playbooks/builder.yml`, and the key of its compiler."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.ansible.playbook_events import Task, explain_failure
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.kernel_cache import parse_facts
from bisector.adapters.system.host_requirements import install
from bisector.errors import InfrastructureError, RequestError
from bisector.ports import Progress
from bisector.schemas.kernel.toolchain import Toolchain

_PROBE_SECONDS = 300.0
"""Timeout of a probe: a play of one task takes 2 s, but may have to install tuxmake on a new remote
builder."""

_FETCH_SECONDS = 3600.0
"""Timeout of fetching a toolchain: an archive is 30 to 200 MB, and a mirror may be slow."""

_OWN_PACKAGE = frozenset(("git", "make", "flex", "bison", "bc", "perl", "ccache", "tar", "gzip"))
"""Programs whose Debian package has their name."""

_ENGINE = ("podman", "runc")
"""What runs images, commands and packages of one name. crun, podman's first choice, refuses machines with
control groups of both versions; runc takes all."""


@dataclass(frozen=True, slots=True)
class BuilderFacts:
    """The result of a probe of a builder. here: it shares our files, so the source need not be sent."""

    folder: str
    here: bool
    cpus: int
    toolchain: str
    trees: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WantedToolchain:
    """A toolchain that a builder must have. mirror: where archives are; install: packages, if need be."""

    row: Toolchain
    mirror: str | None = None
    install: bool = False

    def archive(self, host: str) -> Mapping[str, str]:
        """Return the role's variables for the archive. Raises RequestError if no mirror is configured."""
        archive = self.row.archive
        if archive is None:
            return {}
        if self.mirror is None:
            raise RequestError(
                f"the toolchain '{self.row.name}' is the archive {archive.file}, and no mirror is configured",
                details=f"{describe_row(self.row)}; builder '{host}'",
                cure="set toolchain_mirror in perfbisect.toml (or PERFBISECT_TOOLCHAIN_MIRROR) to the URL of "
                "the folder that has it: https://... or file:///...",
            )
        return {"url": f"{self.mirror.rstrip('/')}/{archive.file}", "sha256": archive.sha256}

    def packages(self, missing: Sequence[str]) -> list[str]:
        """Return the Debian packages that bring what is missing, as far as that is known."""
        if self.row.container:  # the tools are in the image, where a package of the builder would not help
            return list(_ENGINE) if _ENGINE[0] in missing else []
        own = {self.row.compiler, *(f"{self.row.cross}{tool}" for tool in ("ld", "readelf", "size"))}
        found = [name for tool in missing if tool in own for name in self.row.package.split()]
        return list(dict.fromkeys([*found, *(tool for tool in missing if tool in _OWN_PACKAGE)]))


def probe_builder(
    ansible: Ansible, host: str, cache: Path, wanted: WantedToolchain, progress: Progress
) -> BuilderFacts:
    """Ask a builder what it has; put the toolchain there if it is an archive.

    Raises RequestError without a mirror for an archive, InfrastructureError naming what the builder lacks, an
    archive that is not what its row says, or a compiler that does not compile.
    """
    row = wanted.row
    facts = _run_probe(ansible, host, cache, wanted, (), progress)
    missing = facts.get("missing", "").split()
    packages = wanted.packages(missing)
    if packages and wanted.install:
        progress(f"installing {' '.join(packages)} on '{host}'")
        facts = _run_probe(ansible, host, cache, wanted, packages, progress)
        missing = facts.get("missing", "").split()
        packages = wanted.packages(missing)  # what was installed cures nothing any more
    if missing:
        inside = f", in the image {row.container}" if row.container and not packages else ""
        raise InfrastructureError(
            f"the builder '{host}' lacks: {' '.join(missing)}{inside}",
            details=describe_row(row),
            cure=f"there: {install(' '.join(packages))}; or 'perfbisect kernel check A..B --install' does it"
            if packages
            else "take an image that has them"
            if inside
            else "run 'make deps' there, or install the Debian packages with these programs",
        )
    sandbox = facts.get("sandbox", "none")
    if sandbox == "none":
        raise InfrastructureError(
            f"the builder '{host}' has no sandbox: the Makefiles of a kernel could do harm there",
            details="neither bubblewrap nor unshare works there, and no other user can write to "
            f"{facts.get('folder', 'its folder')}",
            cure=f"there: {install('bubblewrap')}; in a container that forbids namespaces: as root, with "
            "PERFBISECT_CACHE_DIR (or perfbisect_folder) in a folder that every user may pass through",
        )
    if sandbox == "user":
        progress(f"'{host}' has no bubblewrap that works: builds run as another user, but with the network")
    if facts.get("compiles") != "yes":
        raise InfrastructureError(
            f"the toolchain '{row.name}' does not work on the builder '{host}'",
            details=f"{row.compiler} on one small C file: {facts.get('compiles') or 'no word of why'}",
            cure=f"try it there by hand, or mend the row '{row.name}' of kernels/toolchains.toml",
        )
    return BuilderFacts(
        folder=facts["folder"],
        here=facts["here"] == "yes",
        cpus=int(facts["cpus"]),
        toolchain=facts["toolchain"],
        trees=tuple(facts.get("trees", "").split()),
    )


def _run_probe(
    ansible: Ansible,
    host: str,
    cache: Path,
    wanted: WantedToolchain,
    packages: Sequence[str],
    progress: Progress,
) -> dict[str, str]:
    """Return what the probe found. Raises InfrastructureError if the role failed before it could probe."""
    row = wanted.row
    played = ansible.play(
        "builder",
        limit=host,
        variables={
            "perfbisect_shared_folder": str(cache.absolute()),
            "perfbisect_toolchain": row.compiler,
            "perfbisect_programs": row.programs,
            "perfbisect_shim": row.shim(),
            "perfbisect_cross": row.cross,
            "perfbisect_container": row.container,
            "perfbisect_tuxmake": importlib.metadata.version("tuxmake") if row.driver == "tuxmake" else "",
            "perfbisect_archive": wanted.archive(host),
            "perfbisect_packages": list(packages),
        },
        folder=cache / "builder" / "plays",
        timeout=_FETCH_SECONDS if row.archive or row.container or packages else _PROBE_SECONDS,
        progress=progress,
        check=False,
    )
    failed = played.failed
    if failed is not None:
        raise _explain_failure(failed, host, wanted, played.log)
    facts = parse_facts(str(played.result("looking at the builder").get("stdout", "")))
    played.log.unlink(missing_ok=True)
    return facts


def describe_row(row: Toolchain) -> str:
    """Return the place of a row, for people."""
    return f"kernels/toolchains.toml: the row '{row.name}', {row.range}"


def _explain_failure(failed: Task, host: str, wanted: WantedToolchain, log: Path) -> InfrastructureError:
    row, archive, reason = wanted.row, wanted.row.archive, explain_failure(failed)
    if row.container and "toolchain" in failed.name:
        return InfrastructureError(
            f"the image of the toolchain '{row.name}' cannot be fetched to the builder '{host}'",
            details=f"{describe_row(row)}\n{row.container}\n{reason}\nlog: {log}",
            cure=f"there: podman pull {row.container}; or mend 'container' in that row",
        )
    if archive is None or "toolchain" not in failed.name:
        return InfrastructureError(f"{failed.name} failed on '{host}'", details=f"{reason}\nlog: {log}")
    if "checksum" in reason.lower():
        return InfrastructureError(
            f"the archive {archive.file} is not what the toolchain '{row.name}' wants: its checksum differs",
            details=f"{describe_row(row)}\n{reason}",
            cure=f"mend sha256 in that row if you trust {wanted.mirror}, else the file there",
        )
    return InfrastructureError(
        f"the toolchain '{row.name}' cannot be put on the builder '{host}' ({failed.name})",
        details=f"{describe_row(row)}\nfrom {wanted.mirror}: {archive.file}\n{reason}\nlog: {log}",
        cure="look whether the mirror has that file and the builder can reach it",
    )
