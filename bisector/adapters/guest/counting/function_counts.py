"""From executed blocks to functions: the kernel's symbol table, and sums over the blocks of each run.

A block belongs to the function in which it begins. Blocks lie at addresses of the linked kernel: where the
kernel moves itself (CONFIG_RANDOMIZE_BASE without 'nokaslr') nothing can be told.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bisector.adapters.guest.counting.count_file import RunCounts
from bisector.adapters.system.archive import ArchiveError, read_compressed
from bisector.linux.profile import source_name
from bisector.model.commit_graph import is_listed, short_name
from bisector.ports import Kernel
from bisector.schemas.counted_functions import MAX_NAME, CountedFunction, CountedFunctions

SYMBOLS = "System.map.gz"
"""Beside a kernel's image in the cache; entries of earlier versions and of some packages have none."""

_SYMBOLS_BYTES_MAX = 256 << 20
"""A kernel of a distribution has 10 MB."""

_TEXT = re.compile(r"^([0-9a-f]{16}) ([tTwW]) (\S+)$", re.MULTILINE)
_ENDS = {"_etext", "__entry_text_end", "_einittext", "__end_rodata"}
_ELSEWHERE = "[outside of the kernel's own text]"
"""Modules, and code that the kernel writes itself (eBPF)."""

_COLUMNS = 4
"""Instructions, and the misses of L1i, of L1d and to memory."""


class SymbolTable:
    """The functions of a kernel by address."""

    def __init__(self, text: str) -> None:
        """Read a System.map; of several names of one address the first one in the alphabet counts."""
        found: dict[int, str] = {}
        for address, _, name in _TEXT.findall(text):
            place = int(address, 16)
            if place >> 63:
                found[place] = min(found.get(place, name), name)
        self._addresses = sorted(found)
        self._names = [found[address] for address in self._addresses]

    def function(self, address: int) -> str:
        """Return the function that an address lies in, by its name in the source."""
        at = bisect_right(self._addresses, address) - 1
        name = self._names[at] if at >= 0 else _ELSEWHERE
        last = at == len(self._names) - 1
        return _ELSEWHERE if last or name in _ENDS else source_name(name)[:MAX_NAME]


def symbols_of(kernel: Kernel, cmdline: str) -> SymbolTable | str:
    """Return a kernel's functions, or why they cannot be told. cmdline: the one that it was booted with."""
    if kernel.options.get("RANDOMIZE_BASE") == "y" and "nokaslr" not in cmdline.split():
        return (
            "the kernel moves itself at each boot (CONFIG_RANDOMIZE_BASE): add 'kaslr: off' to 'environment' "
            "of the manifest"
        )
    symbols = kernel.image.with_name(SYMBOLS)
    try:
        text = read_compressed(symbols, _SYMBOLS_BYTES_MAX)
    except ArchiveError as error:
        if symbols.exists():
            return f"the kernel's symbols cannot be read: {error.message}"
        if is_listed(kernel.sha):
            return (
                f"{short_name(kernel.sha)} came without its symbols: list it as a folder with vmlinuz, "
                "config and System.map, which Debian has in the package of debug information"
            )
        return (
            f"the kernel in {kernel.image.parent} was built by an earlier version, which kept no symbols: "
            "remove this folder, so that it is built again"
        )
    return SymbolTable(text.decode("utf-8", "replace"))


@dataclass(slots=True)
class _Sums:
    """One function. sums: of its columns over all runs; runs: those that executed it."""

    sums: list[int] = field(default_factory=lambda: [0] * _COLUMNS)
    least: int | None = None
    most: int = 0
    runs: int = 0

    def add(self, columns: Sequence[int]) -> None:
        """Take one more run."""
        self.sums = [a + b for a, b in zip(self.sums, columns, strict=True)]
        self.least = columns[0] if self.least is None else min(self.least, columns[0])
        self.most = max(self.most, columns[0])
        self.runs += 1


class FunctionCounts:
    """Sums of the runs of one boot. A run's blocks are summed up at once: they take megabytes."""

    def __init__(self) -> None:
        """Begin without a run."""
        self._runs, self._user = 0, 0
        self._functions: defaultdict[str, _Sums] = defaultdict(_Sums)

    def add(self, counts: RunCounts, symbols: SymbolTable) -> None:
        """Take one more run."""
        self._runs += 1
        self._user += counts.user
        for name, columns in _by_function(counts.blocks, symbols).items():
            self._functions[name].add(columns)

    def summarise(self, geometry: str) -> CountedFunctions | None:
        """Return what each function executed, the most first; None without a run."""
        if not self._runs:
            return None
        functions = [self._mean(name, one, bool(geometry)) for name, one in self._functions.items()]
        return CountedFunctions(
            runs=self._runs,
            user=self._user / self._runs,
            geometry=geometry,
            functions=tuple(sorted(functions, key=lambda one: (-one.instructions, one.name))),
        )

    def _mean(self, name: str, found: _Sums, misses: bool) -> CountedFunction:
        means = [total / self._runs for total in found.sums]
        least = found.least if found.runs == self._runs and found.least is not None else 0
        return CountedFunction(
            name=name,
            instructions=means[0],
            spread=float(found.most - least),
            misses=tuple(means[1:]) if misses else (),
        )


def _by_function(blocks: Sequence[Sequence[int]], symbols: SymbolTable) -> Mapping[str, list[int]]:
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0] * _COLUMNS)
    for address, instructions, executions, *misses in blocks:
        line = sums[symbols.function(address)]
        line[0] += instructions * executions
        for column, missed in enumerate(misses[: _COLUMNS - 1], start=1):
            line[column] += missed
    return sums


def values(found: CountedFunctions) -> Iterator[tuple[str, float]]:
    """Yield what a report lists: programs, then each function."""
    yield USER, found.user
    for one in found.functions:
        yield one.name, one.instructions


USER = "[user programs]"
