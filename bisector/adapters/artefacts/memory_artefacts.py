"""Artefacts in memory, for tests."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bisector.errors import InfrastructureError
from bisector.model.artefacts import Artefact


class MemoryArtefacts:
    """store_ports.ArtefactStore in this process. away: raised by every method, where it is set."""

    def __init__(self) -> None:
        self.contents: dict[Artefact, bytes] = {}
        self.away: InfrastructureError | None = None

    def check(self) -> None:
        """Raise what is `away`."""
        if self.away is not None:
            raise self.away

    def has(self, artefact: Artefact) -> bool:
        """Return whether there is one."""
        self.check()
        return artefact in self.contents

    def put(self, artefact: Artefact, file: Path) -> str:
        """Keep a copy of a file; return its SHA-256."""
        self.check()
        content = file.read_bytes()
        if len(content) > artefact.max_bytes:
            raise InfrastructureError(f"the {artefact} is too large")
        self.contents.setdefault(artefact, content)
        return hashlib.sha256(content).hexdigest()

    def get(self, artefact: Artefact, target: Path) -> bool:
        """Write an artefact to a new file; False where there is none."""
        self.check()
        if artefact in self.contents:
            target.write_bytes(self.contents[artefact])
        return artefact in self.contents

    def set_aside(self, artefact: Artefact) -> None:
        """Withdraw an artefact, so that nobody is given it any more."""
        self.check()
        self.contents.pop(artefact, None)
