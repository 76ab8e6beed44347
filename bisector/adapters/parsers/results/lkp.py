"""Results of lkp-tests: COMMIT/N/stats.json, one folder a run, or COMMIT/matrix.json, which is made of them.

One run's own folder is read as well. Every run is a boot of its own.
"""

from __future__ import annotations

from pathlib import Path

from bisector.adapters.parsers.input_text import json_number, malformed, natural_order, read_json_object
from bisector.stats.samples import SampleSeries, SampleSet

_STATS, _MATRIX = "stats.json", "matrix.json"
_RUNS = f"[0-9]*/{_STATS}"


def looks_like(folder: Path) -> bool:
    """Return whether a folder holds lkp's results."""
    return any((folder / name).exists() for name in (_STATS, _MATRIX)) or any(folder.glob(_RUNS))


def read(folder: Path) -> SampleSet:
    """Read the results of one commit. Raises RequestError."""
    own = folder / _STATS
    runs = [own] if own.exists() else sorted(folder.glob(_RUNS), key=lambda p: natural_order(p.parent.name))
    found: dict[str, list[tuple[float, ...]]] = {}
    if runs:
        for number, path in enumerate(runs):
            for name, value in read_json_object(path).items():
                last = value[-1] if isinstance(value, list) and value else value
                found.setdefault(name, [()] * len(runs))[number] = _number(last, f"{path}: '{name}'")
    else:
        path = folder / _MATRIX
        for name, values in read_json_object(path).items():
            if isinstance(values, list):
                found[name] = [_number(v, f"{path}: '{name}'") for v in values]
    found = {n: v for n, v in found.items() if any(v) and not n.startswith("stats_source")}
    if not found:
        raise malformed(
            str(folder), "its statistics hold no number", "lkp's job must have finished at least once"
        )
    short = [n for n, v in found.items() if not all(v)] if runs else []
    notes = (f"{len(short)} statistics are missing in some runs, such as {short[0]}",) if short else ()
    return SampleSet(folder.name, {n: SampleSeries(tuple(v)) for n, v in sorted(found.items())}, notes=notes)


def _number(value: object, where: str) -> tuple[float, ...]:
    """Return a statistic of one run, or nothing in its place, so that ratios pair numbers of the same run."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ()
    return (json_number(value, where),)
