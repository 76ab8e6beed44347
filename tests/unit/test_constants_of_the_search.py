"""The page of constants: each one of `bisector/search`, its value, and a cell of the benchmark."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from tests.bench.search.grid import cells

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/explanation/constants-of-the-search.md"
OTHER_PLANNERS = frozenset({"series", "attempt"})
"""Folders that the page is not about."""


def constants() -> Iterator[tuple[str, object]]:
    """Yield name and value of each constant that a module defines."""
    folder = ROOT / "bisector/search"
    for path in folder.rglob("*.py"):
        if path.parent.name in OTHER_PLANNERS:
            continue
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets += [node.target] if isinstance(node, ast.AnnAssign) else []
            for target in targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name) and name.id.isupper() and len(name.id) > 1:
                        yield name.id, getattr(module, name.id)


def rows() -> dict[str, list[str]]:
    """Return the cells of each row of the page behind its constant."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    parts = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return {first.strip("`"): rest for first, *rest in parts}


def test_every_constant_has_its_row() -> None:
    assert dict(constants()).keys() == rows().keys()


def test_values_are_those_of_the_code() -> None:
    told = {name: float(Fraction(row[0])) for name, row in rows().items() if row[0]}
    scalars = {name: value for name, value in constants() if isinstance(value, int | float)}
    assert told == {name: value for name, value in scalars.items() if name in told}
    assert [n for n in scalars if n not in told] == ["MAX_PRINTED_LOG_ODDS"]  # of a million


def test_each_says_what_it_bounds_and_cells_are_those_of_the_grid() -> None:
    names = {cell.name for cell in cells()}
    for constant, (_, bounds, origin, cell) in rows().items():
        assert bounds and origin, constant
        assert not cell or cell in names, constant
