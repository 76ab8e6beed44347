"""The programs of one workload, and which of them a block of user code is of.

Processes have the same addresses, so an address alone says nothing: a block is a program's if the program's
file has that very code there.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path

from bisector.adapters.guest.counting.load_bases import Block, LoadBases, Loaded
from bisector.adapters.guest.counting.program_code import MAGIC, ProgramCode
from bisector.adapters.system.files import os_errors_reported
from bisector.schemas.counted_functions import IN_PROGRAM, MAX_NAME

_MAX_BYTES = 64 << 20
"""Largest file that is read for its functions. Chosen: the programs of workloads have a few MiB."""
_UNNAMED = "[no symbol]"


class _Layout:
    """Where programs lie: each with what is added to its addresses."""

    def __init__(self, some: Iterable[Loaded]) -> None:
        ranges = [(base + one.extent[0], base + one.extent[1], one, base) for one, base in some]
        self._ranges = sorted(ranges, key=lambda one: one[:2])
        self._begins = [begin for begin, *_ in self._ranges]
        self._longest = max((end - begin for begin, end, *_ in ranges), default=0)

    def names(self, address: int, size: int, checksum: int) -> set[tuple[str, bool]]:
        """Return 'program:function' of a block, and whether that begins there, of each that has it."""
        first = bisect_right(self._begins, address - self._longest)
        return {
            (_name(program, address - base), program.is_entry(address - base))
            for _, _, program, base in self._ranges[first : bisect_right(self._begins, address)]
            if program.has(address - base, size, checksum)
        }


def _name(program: ProgramCode, address: int) -> str:
    return f"{program.name}{IN_PROGRAM}{program.function(address) or _UNNAMED}"[:MAX_NAME]


class LoadedPrograms:
    """Programs where they lay in one run."""

    def __init__(self, *layouts: _Layout) -> None:
        """Take layouts; the first one that has a block says whose it is."""
        self._layouts = layouts

    def place(self, address: int, size: int, checksum: int) -> tuple[str, bool]:
        """Return 'program:function' of a block, and whether that begins there; ('', False) where not known.

        Code that several programs have at the same address, such as how C programs start, could be of each.
        """
        every = (layout.names(address, size, checksum) for layout in self._layouts)
        found = next(filter(None, every), set())
        return found.pop() if len(found) == 1 else ("", False)


class Programs:
    """The programs of one workload, in one boot."""

    def __init__(self, some: Sequence[ProgramCode] = ()) -> None:
        """Take programs, each once."""
        self._fixed = _Layout((one, 0) for one in some if not one.moves)
        self._moving = LoadBases(one for one in some if one.moves)

    def in_run(self, blocks: Iterable[Block] = ()) -> LoadedPrograms:
        """Return the programs where they lay in a run. blocks: the user code that was executed in it.

        What a program at fixed addresses has says nothing of where others lie.
        """
        others = (block for block in blocks if not self._fixed.names(*block))
        return LoadedPrograms(self._fixed, _Layout(self._moving.found(others)))


def programs_in(folder: Path) -> Programs:
    """Return the programs in a folder, by their paths in it; copies count once.

    Raises InfrastructureError.
    """
    found: dict[bytes, ProgramCode] = {}
    with os_errors_reported(f"cannot read the programs in {folder}"):
        for path in sorted(folder.rglob("*")):
            if not path.is_file() or path.stat().st_size > _MAX_BYTES or not _is_elf(path):
                continue
            file = path.read_bytes()
            try:
                found.setdefault(file, ProgramCode(str(path.relative_to(folder)), file))
            except (ValueError, struct.error):
                continue
    return Programs(tuple(found.values()))


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
