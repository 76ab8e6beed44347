"""The file that the plugin fills: a first line, then one line of JSON for each run. A guest may write any.

Whatever executes the marker instructions begins and ends runs, so what is read is bounded and checked. Lines
carry the numbers that the measuring agent gives its runs, and are taken out once they are read: the plugin
stops writing where too much is unread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bisector.adapters.system.files import write_file
from bisector.adapters.system.machine_locks import locked
from bisector.errors import TestbedLost
from bisector.schemas.kernel.cpu_model import CpuModel
from bisector.schemas.refusal import describe_problems

_MAX_LINE_BYTES = 128 << 20
"""Longest line: a million blocks (BLOCKS_MAX of counters.c) of 100 characters. A run has 0.1 to 2 MB."""

_NUMBER = re.compile(rb'\{"run": ?(\d{1,10})[,}]')

Count = Annotated[int, Field(ge=0, lt=1 << 64)]
Block = Annotated[tuple[Count, ...], Field(min_length=4, max_length=12)]
"""Address, bytes, instructions, executions; with a model of caches also what missed L1i, L1d, L2, the last
level, the TLB of instructions, of data and the second one, and mispredicted branches at its end."""
ProgramBlock = Annotated[tuple[Count, ...], Field(min_length=5, max_length=13)]
"""The same of user code, with the CRC-32 of its bytes behind the executions."""
CountedPath = tuple[Count, Count, Count, Count]
"""The number of the path that it was called from (0: of none), function, instructions, calls. The first path
has number 1, and each comes behind the one that it was called from."""


_NO_METRICS = {"run", "user", "kernel", "blocks", "programs", "paths"}
"""Fields of a run that are not metrics of the same name."""


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class FirstLine(_Line):
    """The line that the plugin writes when it is loaded."""

    counters: Annotated[int, Field(ge=1, le=1)]
    target: Annotated[str, Field(max_length=40)]


class RunCounts(_Line):
    """What was counted between the markers of one run. None: it was not asked for."""

    run: Count
    user: Count
    kernel: Count
    loads: Count | None = None
    stores: Count | None = None
    branches: Count | None = None
    taken_branches: Count | None = None
    branch_misses: Count | None = None
    L1i_misses: Count | None = None
    L1d_misses: Count | None = None
    L2_misses: Count | None = None
    LL_misses: Count | None = None
    iTLB_misses: Count | None = None
    dTLB_misses: Count | None = None
    sTLB_misses: Count | None = None
    blocks: tuple[Block, ...] = ()
    programs: tuple[ProgramBlock, ...] = ()
    paths: tuple[CountedPath, ...] = ()

    def values(self, cpu: CpuModel) -> Mapping[str, float]:
        """Return what was counted by the names of metrics. cpu: for modelled cycles."""
        counted = self.model_dump(exclude=_NO_METRICS, exclude_none=True)
        found = {name.replace("_", "-"): float(value) for name, value in counted.items()}
        found["user-instructions"], found["kernel-instructions"] = float(self.user), float(self.kernel)
        found["instructions"] = float(self.user + self.kernel)
        if self.LL_misses is not None and self.branch_misses is not None:
            levels = self.L1i_misses, self.L1d_misses, self.L2_misses, self.LL_misses
            tlbs = self.iTLB_misses, self.dTLB_misses, self.sTLB_misses
            missed = [value or 0 for value in (*levels, *tlbs, self.branch_misses)]
            found["modelled-cycles"] = cpu.cycles.of(self.user + self.kernel, missed)
        return found


class CountFile:
    """Gives the counts of runs, each by its number."""

    def __init__(self, path: Path) -> None:
        """Make the file, empty, and its folder: the plugin opens it. Raises InfrastructureError."""
        self.path = path
        write_file(path, b"")
        self._place = 0
        self._begun = False

    def run(self, number: int) -> RunCounts:
        """Return the counts of a run that has ended, passing over those before it.

        Raises TestbedLost: they are not there, or cannot be read.
        """
        while line := self._next():
            found = _NUMBER.match(line)
            if found is None or int(found[1]) == number:
                return self._parse(line)
            if int(found[1]) > number:
                break
        raise TestbedLost(f"the emulator counted nothing in run {number}", details=str(self.path))

    def _parse(self, line: bytes) -> RunCounts:
        try:
            return RunCounts.model_validate_json(line)
        except ValidationError as error:
            raise self._unreadable(error) from error

    def _next(self) -> bytes:
        """Return the next line of a run and take it out of the file; b'' if there is no further one."""
        with self.path.open("r+b") as file, locked(file.fileno()):
            file.seek(self._place)
            if not self._begun and (first := file.readline(_MAX_LINE_BYTES)):
                try:
                    FirstLine.model_validate_json(first)
                except ValidationError as error:
                    raise self._unreadable(error) from error
                self._begun = True
            line = file.readline(_MAX_LINE_BYTES) if self._begun else b""
            self._place = file.tell()
            if self._place == os.fstat(file.fileno()).st_size:
                os.truncate(file.fileno(), 0)
                self._place = 0
        return line

    def _unreadable(self, error: ValidationError) -> TestbedLost:
        return TestbedLost(
            "what the emulator counted cannot be read", details=f"{self.path}\n{describe_problems(error)}"
        )
