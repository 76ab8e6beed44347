"""Call chains of two profiles: who calls a symbol, what it calls, and the frames of a flame graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bisector.linux.profile import Profile, Stack, Symbol


@dataclass(slots=True)
class Node:
    """One frame. a, b: its shares of both totals (0.01 = 1%); next: the frames it calls, or its callers."""

    a: float = 0.0
    b: float = 0.0
    next: dict[Symbol, Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of a printed tree. depth: 0 for the symbol itself; a, b: shares of the totals."""

    depth: int
    symbol: Symbol
    a: float
    b: float


@dataclass(frozen=True, slots=True)
class Frame:
    """A box of a flame graph. left, width: shares of the second profile; a: its share of the first."""

    symbol: Symbol
    depth: int
    left: float
    width: float
    a: float


def callers(a: Profile, b: Profile, name: str, least: float) -> list[Branch]:
    """Return the symbol's callers as a tree, without branches below `least` (a share)."""
    return _tree_of(a, b, name, least, outwards=True)


def callees(a: Profile, b: Profile, name: str, least: float) -> list[Branch]:
    """Return the symbol's callees as a tree, without branches below `least` (a share)."""
    return _tree_of(a, b, name, least, outwards=False)


def _tree_of(a: Profile, b: Profile, name: str, least: float, *, outwards: bool) -> list[Branch]:
    roots: dict[Symbol, Node] = {}
    for side, profile in enumerate((a, b)):
        for stack, weight in profile.stacks.items():
            at = next((i for i, s in enumerate(stack) if s.name == name and s.origin != "task"), None)
            if at is None:
                continue
            path = stack[at::-1] if outwards else stack[at:]
            _add(roots, path, weight / profile.total, side)
    return list(_branches(roots, 0, least))


def _add(roots: dict[Symbol, Node], path: Stack, share: float, side: int) -> None:
    level = roots
    for symbol in path:
        node = level.setdefault(symbol, Node())
        if side == 0:
            node.a += share
        else:
            node.b += share
        level = node.next


def _branches(level: Mapping[Symbol, Node], depth: int, least: float) -> Iterator[Branch]:
    for symbol, node in sorted(level.items(), key=lambda x: (-max(x[1].a, x[1].b), x[0])):
        if max(node.a, node.b) >= least:
            yield Branch(depth, symbol, node.a, node.b)
            yield from _branches(node.next, depth + 1, least)


def flame(a: Profile, b: Profile, least: float) -> tuple[list[Frame], float]:
    """Return (frames of the second profile from the bottom up, share of the first in frames of its own).

    Frames narrower than `least` (a share) are left out. Siblings are in alphabetical order, as in every
    flame graph (Gregg 2016), so that equal code has equal places.
    """
    roots: dict[Symbol, Node] = {}
    for side, profile in enumerate((a, b)):
        for stack, weight in profile.stacks.items():
            _add(roots, stack, weight / profile.total, side)
    return list(_frames(roots, 0, 0.0, least)), _share_only_in_first(roots)


def _frames(level: Mapping[Symbol, Node], depth: int, left: float, least: float) -> Iterator[Frame]:
    for symbol, node in sorted(level.items()):
        if node.b >= least:
            yield Frame(symbol, depth, left, node.b, node.a)
            yield from _frames(node.next, depth + 1, left, least)
        left += node.b


def _share_only_in_first(level: Mapping[Symbol, Node]) -> float:
    return sum(node.a if node.b == 0 else _share_only_in_first(node.next) for node in level.values())
