"""Where a mutation would say nothing of the tests: text for people, types, and options of data classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Span = tuple[tuple[int, int], tuple[int, int]]
"""Line (from 1) and column (from 0, in characters) of the first character and behind the last."""

LOGGERS = frozenset({"log", "logger"})


def silent_places(source: str) -> list[Span]:
    """Return the spans of a module in which no mutation is made.

    They are annotations, code for type checkers, strings with values in them (messages, nearly
    all), the arguments of an exception that is raised, log calls, and the options of `@dataclass`.
    """
    lines = source.splitlines()
    return [_span(node, lines) for node in _silent(ast.parse(source))]


def is_within(start: tuple[int, int], spans: list[Span]) -> bool:
    """Return whether a position is in one of the spans."""
    return any(first <= start < end for first, end in spans)


def _silent(tree: ast.Module) -> Iterator[ast.expr | ast.stmt]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from [node.returns] if node.returns else []
            case ast.arg(annotation=ast.expr() as annotation) | ast.AnnAssign(annotation=annotation):
                yield annotation
            case ast.ClassDef(decorator_list=decorators):
                for decorator in decorators:
                    if "dataclass" in ast.unparse(decorator):
                        decorator.col_offset -= 1  # the @ before it
                        yield decorator
            case ast.Raise(exc=ast.Call(args=values, keywords=keywords)):
                yield from [*values, *(keyword.value for keyword in keywords)]
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))) if name in LOGGERS:
                yield node
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield node
            case ast.JoinedStr() | ast.Expr(value=ast.Constant()):
                yield node


def _span(node: ast.expr | ast.stmt, lines: list[str]) -> Span:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return (
        (node.lineno, _column(lines[node.lineno - 1], node.col_offset)),
        (node.end_lineno, _column(lines[node.end_lineno - 1], node.end_col_offset)),
    )


def _column(line: str, offset: int) -> int:
    """Return the column of a character whose place `ast` gives in bytes."""
    return len(line.encode()[:offset].decode())
