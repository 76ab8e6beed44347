"""Trials of a benchmark, round-robin over its cells; what the present code has measured stays measured."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bisector.simulation.batch import derive_seeds
from tests.bench.search import kept, measured


@dataclass(frozen=True)
class Bench:
    """What is tried. cells: what a cell is, by name; code: the sources that decide the numbers.

    search: carries out the trial of a cell with a seed and returns its numbers. Each cell has seeds of its
    own: of equal ones, labs of two cells draw equal modes of boots, and a line over all cells would count a
    draw as often as there are cells.
    """

    name: str
    cells: Mapping[str, object]
    search: Callable[[str, int], Mapping[str, Any]]
    code: tuple[str, ...]
    seed: int


def options_of(about: str | None, trials: int) -> argparse.ArgumentParser:
    """Return the options that such benchmarks share. about: docstring of the module; trials: by default."""
    parser = argparse.ArgumentParser(description=(about or "").split("\n")[0])
    parser.add_argument("--trials", type=int, default=trials, help=f"of each cell; {trials}")
    parser.add_argument("--only", action="append", default=[], metavar="CELL", help="a part of its name")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin nothing behind this time")
    parser.add_argument("--rows", type=Path, default=measured.ROWS, help="where trials are kept as they end")
    parser.add_argument("--keep", action="store_true", help="put the lines into RESULTS.md")
    return parser


def measure(bench: Bench, options: argparse.Namespace) -> list[measured.Row]:
    """Return the rows of the chosen cells, by cell and seed, after measuring what is missing.

    A row's 'seed' is that of its trial, the same for all cells; the cell's own is derived from both.
    """
    until = time.monotonic() + 60 * options.minutes
    names = chosen(options.only, bench.cells)
    codes = {name: measured.fingerprint(bench.code, bench.cells[name]) for name in names}
    at, file = measured.commit_of(measured.PLANNER), measured.RowFile(options.rows)
    seeds = derive_seeds(options.trials, bench.seed)
    found = {
        (row["cell"], row["seed"]): row
        for row in file.read()
        if row["bench"] == bench.name and row["code"] == codes.get(row["cell"])
    }
    for seed in seeds:
        for name in names:
            if (name, seed) in found or time.monotonic() > until:
                continue
            row = {"bench": bench.name, "cell": name, "seed": seed, "code": codes[name], "at": at}
            row |= bench.search(name, _own_seed(bench, name, seed))
            found[name, seed] = row
            file.append([row])
    return [found[name, seed] for name in names for seed in seeds if (name, seed) in found]


def _own_seed(bench: Bench, name: str, seed: int) -> int:
    (own,) = derive_seeds(1, seed + list(bench.cells).index(name))
    return own


def chosen(texts: Sequence[str], names: Collection[str]) -> list[str]:
    """Return the names that a text is, or is a part of where none is it; all without any text."""
    return [n for n in names if not texts or any(t == n or (t in n and t not in names) for t in texts)]


def run(
    bench: Bench, lines_of: Callable[[Sequence[measured.Row]], list[kept.Line]], options: argparse.Namespace
) -> int:
    """Measure what is missing, print the lines, and put them into RESULTS.md when told to; return 0."""
    rows = measure(bench, options)
    lines = lines_of(rows) if rows else []
    for line in lines:
        print(f"{line['cell']}: {', '.join(line['shown'].values())}")
    if options.keep:
        kept.keep(lines)
    return 0
