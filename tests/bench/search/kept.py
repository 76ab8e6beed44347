"""Results that stay in the repository: a line for each cell of a benchmark, and the page made of them.

    python -m tests.bench.search.kept        # writes RESULTS.md anew from results.jsonl

A later measurement of a cell takes the place of the earlier one. Benchmarks write here when they are told to
(`--keep`); nobody edits either file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.bench.search import page

FOLDER = Path(__file__).parent
DOCS = FOLDER.parents[2] / "docs/explanation/how-well-it-searches.md"
BEGIN, END = "<!-- from tests/bench/search/results.jsonl -->\n", "<!-- to here -->\n"
"""What stands between them in the documentation is written here, too."""
Line = dict[str, Any]


def load(folder: Path = FOLDER) -> dict[tuple[str, str], Line]:
    """Return the kept lines by benchmark and cell."""
    path = folder / "results.jsonl"
    lines = [json.loads(x) for x in path.read_text().splitlines()] if path.exists() else []
    return {(x["bench"], x["cell"]): x for x in lines}


def keep(lines: Iterable[Line], folder: Path = FOLDER) -> None:
    """Put these in the place of older lines of the same cells, and write the page anew."""
    found = load(folder) | {(x["bench"], x["cell"]): _rounded(x) for x in lines}
    text = [json.dumps(found[key], separators=(",", ":")) for key in sorted(found)]
    (folder / "results.jsonl").write_text("\n".join(text) + "\n")
    (folder / "RESULTS.md").write_text(page.render(found))
    if folder == FOLDER:
        DOCS.write_text(in_docs(DOCS.read_text(), found))


def in_docs(text: str, found: Mapping[tuple[str, str], Line]) -> str:
    """Return the page of the documentation with the table of these results."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{page.in_words(found)}\n\n{END}{rest.partition(END)[2]}"


def _rounded(value: Any) -> Any:
    """Return the value with four digits of each number: more are noise."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, Mapping):
        return {key: _rounded(of) for key, of in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(of) for of in value]
    return value


if __name__ == "__main__":
    keep(())
    sys.exit()
