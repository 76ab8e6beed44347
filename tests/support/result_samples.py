"""Result files as the tests of their readers write them."""

from __future__ import annotations

from pathlib import Path

from bisector.adapters.parsers.results import read
from bisector.stats.samples import SampleSet


def written(folder: Path, text: str, name: str = "a.txt") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def only(place: str) -> SampleSet:
    (found,) = read(place)
    return found


def boots(found: SampleSet) -> dict[str, tuple[tuple[float, ...], ...]]:
    return {name: s.boots for name, s in found.series.items()}
