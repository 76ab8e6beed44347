"""From executed blocks to functions: sums over the blocks of each run.

A block belongs to the function in which it begins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bisector.adapters.guest.counting.call_paths import CallPaths
from bisector.adapters.guest.counting.count_file import RunCounts
from bisector.adapters.guest.counting.symbol_table import SymbolTable
from bisector.schemas.counted_functions import CountedFunction, CountedFunctions

_COLUMNS = 4
"""Instructions, and the misses of L1i, of L1d and to memory."""


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
        self._paths = CallPaths()
        self._functions: defaultdict[str, _Sums] = defaultdict(_Sums)

    def add(self, counts: RunCounts, symbols: SymbolTable, names: Sequence[str] = ()) -> None:
        """Take one more run. names: of functions, by the plugin's numbers. Raises TestbedLost."""
        self._runs += 1
        self._user += counts.user
        for name, columns in _by_function(counts.blocks, symbols).items():
            self._functions[name].add(columns)
        self._paths.add(counts.paths, names)

    def summarise(self, geometry: str, no_paths: str = "") -> CountedFunctions | None:
        """Return what each function executed, the most first; None without a run.

        no_paths: why no paths of calls were counted.
        """
        if not self._runs:
            return None
        functions = [self._mean(name, one, bool(geometry)) for name, one in self._functions.items()]
        return CountedFunctions(
            runs=self._runs,
            user=self._user / self._runs,
            geometry=geometry,
            functions=tuple(sorted(functions, key=lambda one: (-one.instructions, one.name))),
            paths=tuple(self._paths.summarise()),
            no_paths=no_paths,
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
