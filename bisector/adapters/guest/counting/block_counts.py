"""How often each block of a kernel was executed: sums over the runs of one boot, for annotated code."""

from __future__ import annotations

import gzip
from collections import defaultdict
from pathlib import Path

from bisector.adapters.guest.counting.count_file import RunCounts
from bisector.adapters.guest.counting.symbol_table import ELSEWHERE, SymbolTable
from bisector.adapters.system.files import os_errors_reported, sha256_of, write_file
from bisector.ports import Kernel
from bisector.schemas.counted_functions import BLOCKS, MAX_BLOCKS, CountedBlocks


class BlockCounts:
    """Sums of the runs of one boot, without code outside of the kernel's own text: no file has its bytes."""

    def __init__(self) -> None:
        """Begin without a run."""
        self._runs = 0
        self._executions: defaultdict[tuple[int, int], int] = defaultdict(int)
        self._instructions: dict[tuple[int, int], int] = {}

    def add(self, counts: RunCounts, symbols: SymbolTable) -> None:
        """Take one more run."""
        self._runs += 1
        for address, size, instructions, executions, *_ in counts.blocks:
            if symbols.function(address) != ELSEWHERE:
                self._executions[address, size] += executions
                self._instructions[address, size] = instructions

    def write(self, folder: Path, kernel: Kernel) -> None:
        """Write the file into a folder; nothing without a run or an image. Raises InfrastructureError."""
        if not self._runs or not kernel.image.is_file():
            return
        most = sorted(
            self._executions, key=lambda key: (-self._executions[key] * self._instructions[key], key)
        )
        kept = sorted(most[:MAX_BLOCKS])
        with os_errors_reported(f"cannot read {kernel.image}"):
            checksum = sha256_of(kernel.image)
        found = CountedBlocks(
            runs=self._runs,
            arch=kernel.arch,
            sha=kernel.sha,
            recipe=kernel.recipe,
            image=str(kernel.image.absolute()),
            sha256=checksum,
            left_out=len(most) - len(kept),
            blocks=tuple((*key, self._executions[key] / self._runs) for key in kept),
        )
        write_file(folder / BLOCKS, gzip.compress(found.model_dump_json().encode(), mtime=0))
