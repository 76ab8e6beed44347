"""Where position-independent programs lay in a run, found by the code that was executed there.

Such a program lies elsewhere in each process, but always by whole pages. So the checksum of a longer block
leaves few places of the program's file, and each of them says where the program would begin. A beginning that
several blocks have in common is taken for one; then every block can be looked up exactly.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from bisector.adapters.guest.counting.program_code import ProgramCode

_SHORTEST = 16
"""Bytes of a block that is searched for. Of 72,875 blocks of Debian's libc 29 lie in bash at the same place
of a page; all of them are shorter."""
_CONFIRMED = 3
"""Blocks that must agree on where a program begins, none of them a part of another: chosen, since equal code
of 16 bytes elsewhere in a program is rare."""
_TELLING = 4
"""Places of a program that a block may have; one with more is repeated code, no evidence. Chosen."""

_MOST_COMPARED = 4 << 20
"""Comparisons of a block with a place of a program, in one boot: some two seconds. A program of 4 MiB has
1,024 pages, so 4,096 different blocks are searched for in it, the longest of a run first."""
_LEAST_COMPARED = 16
"""What one search counts as at least: it takes as long, and is kept."""

Block = tuple[int, int, int]
"""Address, bytes, CRC-32."""
Loaded = tuple[ProgramCode, int]
"""A program, and what is added to its addresses."""


class LoadBases:
    """Searches of one boot. What one run has shown about a block's places is kept for the next."""

    def __init__(self, programs: Iterable[ProgramCode]) -> None:
        """Take programs that lie elsewhere in each process."""
        self._programs = tuple(programs)
        self._left = _MOST_COMPARED
        self._places: dict[tuple[int, int, int, int], tuple[int, ...]] = {}

    def found(self, blocks: Iterable[Block]) -> list[Loaded]:
        """Return where these programs lay in a run with these blocks; one of several processes several times.

        A program that shares code with another one, such as a function of the same library, seems to lie
        where the other one does. So a beginning is dropped if most of the blocks behind it are nobody's.
        """
        if not self._programs:
            return []
        telling = sorted({block for block in blocks if block[1] >= _SHORTEST})
        own = {one: set(_had(one, telling)) for one in self._confirmed(telling)}
        explained = {block for some in own.values() for block in some}
        return [
            one
            for one, some in own.items()
            if len(some) > sum(x not in explained for x in _within(one, telling))
        ]

    def _confirmed(self, blocks: Iterable[Block]) -> Iterator[Loaded]:
        """Yield the beginnings that enough blocks have in common."""
        confirming: dict[tuple[int, int], list[Block]] = {}
        for block in sorted(blocks, key=lambda one: (-one[1], one)):
            for number in range(len(self._programs)):
                for place in self._places_of(number, block):
                    some = confirming.setdefault((number, block[0] - place), [])
                    if len(some) < _CONFIRMED and not any(_overlap(block, one) for one in some):
                        some.append(block)
        for (number, base), some in confirming.items():
            if base > 0 and len(some) == _CONFIRMED:
                yield self._programs[number], base

    def _places_of(self, number: int, block: Block) -> tuple[int, ...]:
        """Return the addresses in a program, by its number, that a block may come from; none once too much
        was compared."""
        program, (address, size, checksum) = self._programs[number], block
        key = number, address % program.PAGE, size, checksum
        if key not in self._places:
            cost = max(program.pages, _LEAST_COMPARED)
            if cost > self._left:
                return ()
            self._left -= cost
            some = tuple(program.places(*key[1:]))
            self._places[key] = some if len(some) <= _TELLING else ()
        return self._places[key]


def _overlap(one: Block, other: Block) -> bool:
    return one[0] < other[0] + other[1] and other[0] < one[0] + one[1]


def _within(loaded: Loaded, blocks: Sequence[Block]) -> Sequence[Block]:
    """Return those of the blocks, which rise, that begin in a program's code."""
    program, base = loaded
    first, end = program.extent
    return blocks[bisect_left(blocks, (base + first, 0, 0)) : bisect_left(blocks, (base + end, 0, 0))]


def _had(loaded: Loaded, blocks: Sequence[Block]) -> Iterator[Block]:
    program, base = loaded
    for block in _within(loaded, blocks):
        address, size, checksum = block
        if program.has(address - base, size, checksum):
            yield block
