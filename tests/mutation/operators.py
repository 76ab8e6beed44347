"""Operators that cosmic-ray does not have: a swapped function, a dropped argument, slice or call.

Its own for exceptions fails at names with a dot, such as `subprocess.TimeoutExpired`: here is another one.

Each has the methods of cosmic-ray's `Operator`, which has no types to derive from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cosmic_ray import plugins
from parso.python.tree import Name

PROVIDER = "perfbisect"

Node = Any
"""A node of parso's tree; its types are not complete."""

Position = tuple[tuple[int, int], tuple[int, int]]

_PAIRS = (
    ("any", "all"),
    ("min", "max"),
    ("minimum", "maximum"),
    ("argmin", "argmax"),
    ("floor", "ceil"),
    ("union", "intersection"),
    ("startswith", "endswith"),
    ("removeprefix", "removesuffix"),
    ("lstrip", "rstrip"),
)

OPPOSITES = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])} | {
    "partition": "rpartition",
    "split": "rsplit",
    "find": "rfind",
    "sorted": "list",
}
"""Functions and methods that take the same arguments and answer otherwise."""


class SwapFunction:
    """`any` for `all`, `min` for `max`, and so on."""

    def mutation_positions(self, node: Node) -> Iterator[Position]:
        """Yield the name of a function that has an opposite, where it is called or passed on."""
        if node.type == "name" and node.value in OPPOSITES and not node.is_definition():
            yield node.start_pos, node.end_pos

    def mutate(self, node: Node, index: int) -> Node:
        """Return the opposite's name."""
        return Name(OPPOSITES[node.value], node.start_pos, prefix=node.prefix)


class RemoveArgument:
    """A call without one of its keyword arguments, where it has several arguments."""

    def mutation_positions(self, node: Node) -> list[Position]:
        """Return each `name=value` of a call; no iterator, for `mutate` is called between two of them."""
        return [(node.children[at].start_pos, node.children[at].end_pos) for at in self._keywords(node)]

    def mutate(self, node: Node, index: int) -> Node:
        """Remove the argument and the comma after it, or before it if it is the last."""
        at = self._keywords(node)[index]
        first = at if at + 1 < len(node.children) else at - 1
        del node.children[first : first + 2]
        return node

    def _keywords(self, node: Node) -> list[int]:
        if node.type != "arglist":
            return []
        children = enumerate(node.children)
        return [at for at, child in children if child.type == "argument" and child.children[1] == "="]


class RemoveSlice:
    """All of a sequence instead of the part between two bounds."""

    def mutation_positions(self, node: Node) -> Iterator[Position]:
        """Yield each slice that has a bound."""
        if node.type == "subscript" and len(node.children) > 1:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Node, index: int) -> Node:
        """Return the slice without bounds."""
        return _code(":")


class RemoveCall:
    """`pass` instead of a call whose result nobody takes: what it does is not done."""

    def mutation_positions(self, node: Node) -> Iterator[Position]:
        """Yield each statement that is nothing but a call."""
        if node.type == "simple_stmt" and node.children[0].type in ("atom_expr", "await_expr"):
            yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: Node, index: int) -> Node:
        """Put `pass` in the place of the call."""
        node.children[0] = _code("pass", node.children[0].get_first_leaf().prefix)
        return node


class ReplaceException:
    """An exception that nothing raises instead of one that is handled."""

    def mutation_positions(self, node: Node) -> list[Position]:
        """Return each exception of an `except` clause; no iterator, for `mutate` is called between two."""
        return [(each.start_pos, each.end_pos) for each in self._handled(node)]

    def mutate(self, node: Node, index: int) -> Node:
        """Put the other exception in the place of this one."""
        handled = self._handled(node)[index]
        siblings = handled.parent.children
        siblings[siblings.index(handled)] = _code("StopAsyncIteration", handled.get_first_leaf().prefix)
        return node

    def _handled(self, node: Node) -> list[Node]:
        if node.type != "except_clause":
            return []
        named = node.children[1]
        if named.type == "atom":  # in parentheses
            named = named.children[1]
        return named.children[::2] if named.type == "testlist_comp" else [named]


class RemoveReturn:
    """A function goes on where it would return early."""

    def mutation_positions(self, node: Node) -> Iterator[Position]:
        """Yield each `return` without a value."""
        if node.type == "keyword" and node.value == "return" and node.parent.type == "simple_stmt":
            yield node.start_pos, node.end_pos

    def mutate(self, node: Node, index: int) -> Node:
        """Put `pass` in the place of the `return`."""
        return _code("pass", node.get_first_leaf().prefix)


OPERATORS = {
    operator.__name__: operator
    for operator in (SwapFunction, RemoveArgument, RemoveSlice, RemoveCall, ReplaceException, RemoveReturn)
}


def register() -> None:
    """Let cosmic-ray know the operators of this module, as `perfbisect/NAME`."""
    plugins.OPERATOR_PROVIDERS[PROVIDER] = OPERATORS


def _code(text: str, prefix: str = "") -> Node:
    """Return a leaf that stands for any code."""
    return Name(text, (1, 0), prefix=prefix)
