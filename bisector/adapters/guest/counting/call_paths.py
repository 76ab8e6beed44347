"""Instructions of a kernel by path of calls: the plugin's numbers, summed over runs."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence

from bisector.adapters.guest.counting.symbol_table import ELSEWHERE, SymbolTable
from bisector.errors import TestbedLost
from bisector.linux.kernel_entries import kinds
from bisector.schemas.counted_functions import DEEPER, MORE_PATHS, CallPath

_RECORD = struct.Struct("=QII")
"""As files/counters/function_table.h says."""

_NO_FUNCTIONS = (ELSEWHERE, MORE_PATHS, DEEPER)
"""Numbers of functions that are none."""

_SMALLEST_SHARE = 1e-5
"""Least share of a run's instructions: a path with less, all below it included, is counted to its caller. A
run of pipe-test has some thousand paths above it, which take a megabyte."""


class FunctionNumbers:
    """The numbers that the plugin knows functions by."""

    def __init__(self, symbols: SymbolTable) -> None:
        """Number the functions of a kernel."""
        self.names = [*_NO_FUNCTIONS, *dict.fromkeys(name for _, name in symbols if name != ELSEWHERE)]
        self._symbols = symbols

    def records(self) -> bytes:
        """Return the file that the plugin reads."""
        numbers = {name: number for number, name in enumerate(self.names)}
        known: Mapping[str, int] = kinds(self.names)
        return b"".join(
            _RECORD.pack(address, numbers[name], known.get(name, 0)) for address, name in self._symbols
        )


class CallPaths:
    """Sums over those runs of one boot whose calls were followed."""

    def __init__(self) -> None:
        """Begin without a run. A path is known by the one that it was called from, and its function."""
        self._numbers: dict[tuple[int, str], int] = {}
        self._sums: list[list[int]] = []
        self._runs = 0

    def add(self, paths: Sequence[Sequence[int]], names: Sequence[str]) -> None:
        """Take one more run; nothing if it was not followed. names: of functions, by number.

        Raises TestbedLost: these are no paths.
        """
        self._runs += bool(paths)
        ours = [0]
        for parent, function, instructions, calls in paths:
            if parent >= len(ours) or function >= len(names):
                raise TestbedLost("the paths of calls that the emulator counted cannot be read")
            key = ours[parent], names[function]
            number = self._numbers.setdefault(key, len(self._numbers) + 1)
            if number > len(self._sums):
                self._sums.append([0, 0])
            self._sums[number - 1][0] += instructions
            self._sums[number - 1][1] += calls
            ours.append(number)

    def summarise(self) -> Iterator[CallPath]:
        """Yield the means of the runs that were followed, each path behind the one it was called from."""
        keys = list(self._numbers)
        whole = [one[0] for one in self._sums]
        for at in range(len(keys) - 1, -1, -1):
            if parent := keys[at][0]:
                whole[parent - 1] += whole[at]
        least = _SMALLEST_SHARE * sum(one[0] for one in self._sums)
        kept: dict[int, int] = {0: 0}
        found: list[list[float]] = []
        places: list[tuple[int, str]] = []
        for at, (parent, name) in enumerate(keys):
            if whole[at] >= least or parent == 0:
                places.append((kept[parent], name))
                found.append([self._sums[at][0], self._sums[at][1]])
                kept[at + 1] = len(places)
            else:
                kept[at + 1] = kept[parent]
                found[kept[parent] - 1][0] += self._sums[at][0]
        for (parent, name), (instructions, calls) in zip(places, found, strict=True):
            yield parent, name, instructions / self._runs, calls / self._runs
