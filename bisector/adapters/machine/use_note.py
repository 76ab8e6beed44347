"""A note in the state folder that a machine is in use: a process that is killed leaves it there.

The mark on the machine tells other hosts that it is used. A machine that boots, hangs or is off cannot be
asked, and one that was given back need not be: whoever comes after a kill reads here what to give back.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from bisector.adapters.system.files import os_errors_reported, write_atomically


@dataclass(frozen=True, slots=True)
class UseNote:
    """The note of one machine. testbed: its name; token: of this process, '' for one that only looks."""

    state_dir: Path
    testbed: str
    token: str = ""

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return self.state_dir / "testbeds" / f"{quote(self.testbed, safe='')}.in-use"

    def begin(self) -> None:
        """Note that this process uses the machine. Raises InfrastructureError, as all of these do."""
        if self._noted() != self.token:
            write_atomically(self.path, self.token)

    def end(self) -> None:
        """Remove the note, whoever wrote it: the machine was given back, or its failure to was reported."""
        with os_errors_reported(f"cannot remove {self.path}"):
            self.path.unlink(missing_ok=True)

    def is_of_another(self) -> bool:
        """Return whether another process has used the machine and not given it back."""
        return self._noted() not in ("", self.token)

    def _noted(self) -> str:
        with os_errors_reported(f"cannot read {self.path}"):
            try:
                return self.path.read_text(encoding="utf-8", errors="replace")
            except FileNotFoundError:
                return ""
