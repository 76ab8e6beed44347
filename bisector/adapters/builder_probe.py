"""What a builder of the lab has: asked by `playbooks/builder.yml`, and what its compiler is remembered by."""

from __future__ import annotations

import importlib.metadata
import json
import os
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.ansible import Ansible
from bisector.adapters.kernel_cache import disk_error, facts_from
from bisector.errors import InfrastructureError
from bisector.ports import Progress
from bisector.spec.toolchain import Toolchain

_PROBE_SECONDS = 300.0
"""A play of one task takes 2 s; a new remote builder gets tuxmake installed in it."""


@dataclass(frozen=True, slots=True)
class BuilderFacts:
    """What the probe said of a builder. here: it shares our files, so the source need not be sent."""

    folder: str
    here: bool
    cpus: int
    toolchain: str
    trees: tuple[str, ...]


def probe(ansible: Ansible, host: str, cache: Path, toolchain: Toolchain, progress: Progress) -> BuilderFacts:
    """Ask a builder what it has, and remember which compiler that is.

    Raises InfrastructureError naming what it lacks.
    """
    played = ansible.play(
        "builder",
        limit=host,
        variables={
            "perfbisect_shared_folder": str(cache.absolute()),
            "perfbisect_toolchain": toolchain.compiler,
            "perfbisect_cross": toolchain.cross,
            "perfbisect_tuxmake": importlib.metadata.version("tuxmake"),
        },
        folder=cache / "builder" / "plays",
        timeout=_PROBE_SECONDS,
        progress=progress,
    )
    facts = facts_from(str(played.result("looking at the builder").get("stdout", "")))
    played.log.unlink(missing_ok=True)
    missing = facts.get("missing", "").split()
    if missing:
        package = toolchain.package if toolchain.compiler in missing and toolchain.package else ""
        raise InfrastructureError(
            f"the builder '{host}' lacks: {' '.join(missing)}",
            cure=f"apt install {package}"
            if package
            else "run 'make deps' there, or install the Debian packages with these programs",
        )
    found = BuilderFacts(
        folder=facts["folder"],
        here=facts["here"] == "yes",
        cpus=int(facts["cpus"]),
        toolchain=facts["toolchain"],
        trees=tuple(facts.get("trees", "").split()),
    )
    _remember(_file(cache, host, toolchain.compiler), found.toolchain)
    return found


def known_toolchain(cache: Path, host: str, compiler: str) -> str | None:
    """Return what the compiler of a builder said it is when it was last asked; None if it never was."""
    try:
        text = _file(cache, host, compiler).read_text(encoding="utf-8")
        return str(json.loads(text)["toolchain"])
    except (OSError, ValueError, KeyError):
        return None


def _file(cache: Path, host: str, compiler: str) -> Path:
    return cache / "builder" / f"{host}.{compiler.replace('/', '_')}.json"


def _remember(target: Path, toolchain: str) -> None:
    partial = target.with_suffix(f".{os.getpid()}")
    try:
        partial.write_text(json.dumps({"toolchain": toolchain}), encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        raise disk_error(target, error) from error
