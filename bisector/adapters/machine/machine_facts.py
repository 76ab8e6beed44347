"""Facts of a machine over SSH, collected by one script there; nothing is changed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bisector.adapters.system.ssh import SSH
from bisector.errors import InfrastructureError
from bisector.model.format import whole_number
from bisector.resources import resource

_SCRIPT = "machine_facts.sh"

_SECONDS = 60.0
"""Timeout of the script: a few files and programs; a network file system that hangs must not hold us."""

_LINE_CHARACTERS = 4096
"""Longest value that is believed: a kernel's command line has at most 4,096 bytes on any architecture."""


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """values: as the script names them; skew: seconds that its clock is ahead of ours, as far as that can be
    told: uncertainty, in seconds, to either side."""

    values: Mapping[str, str]
    skew: float = 0.0
    uncertainty: float = 0.0

    def get(self, name: str) -> str:
        """Return a value, '' where the machine has none."""
        return self.values.get(name, "")

    def has(self, tool: str) -> bool:
        """Return whether a program was looked for, and found."""
        return f"tool.{tool}" in self.values

    def free_mib(self, place: str) -> int | None:
        """Return the free space of 'boot' or 'work' in MiB, None if it did not say."""
        kib = whole_number(self.get(f"{place}.free_kib"))
        return None if kib is None else kib >> 10


def read_machine_facts(ssh: SSH, folder: str, tools: Sequence[str]) -> MachineFacts:
    """Ask a machine. folder: where workloads or builds go there; tools: programs to look for.

    Raises InfrastructureError if the script does not end well: then there is no shell.
    """
    script = (resource("playbooks") / "files" / _SCRIPT).read_text("utf-8")
    before = time.time()
    answer = ssh.run(["sh", "-c", script, _SCRIPT, folder, *tools], timeout=_SECONDS)
    after = time.time()
    lines = [line[:_LINE_CHARACTERS] for line in answer.output.splitlines()]
    values = dict(line.split("=", 1) for line in lines if "=" in line)
    now = whole_number(values.get("now", ""))
    if now is None:
        raise InfrastructureError(
            f"{ssh.host} does not tell its time",
            details=answer.output[-1000:],
            cure="let its root have an ordinary shell: sh, id, df and date",
        )
    # 'date' gives whole seconds, and was asked last.
    skew = now + 0.5 - (before + after) / 2
    return MachineFacts(values, skew, 0.5 + (after - before) / 2)
