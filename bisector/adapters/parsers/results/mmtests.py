"""Result folders of MMTests and lkp-tests.

MMTests: its own extraction (`extract-mmtests.pl --print-json`) is read, where it lies beside the iterations
as RUN/BENCHMARK.json. Without it RUN/iter-N/BENCHMARK/logs/time-FACTOR-REPETITION and
CASE-FACTOR-REPETITION.time (poundtime's), what GNU time wrote, are read as they are.
lkp: COMMIT/N/stats.json, one folder a run (each its own boot), or the COMMIT/matrix.json made of them; one
run's own folder is read as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bisector.adapters.parsers.malformed import number, wrong
from bisector.adapters.parsers.results import plain_numbers
from bisector.adapters.parsers.unpack import text_of
from bisector.stats.samples import SampleSet, Series

_TIME_FILE = re.compile(
    r"(?:time-(?P<factor>.+)-(?P<run>\d+)|(?P<case>.+)-(?P<cases>\d+)-(?P<repeat>\d+)\.time)(?:\.gz|\.xz)?"
)
_STATS, _RUNS = "stats.json", "[0-9]*/stats.json"
_NAMES = {"real": "Elapsed", "user": "User", "sys": "System"}
_SHORT = {"real": "real", "user": "user", "sys": "syst"}
"""As MMTests calls them, of benchmarks with one case and with several."""


def read(folder: Path) -> SampleSet:
    """Read whichever result folder this is. Raises RequestError that names what was looked for."""
    if any(folder.glob("iter-*")):
        return mmtests(folder)
    if any((folder / name).exists() for name in (_STATS, "matrix.json")) or any(folder.glob(_RUNS)):
        return lkp(folder)
    raise wrong(
        str(folder),
        "this folder holds no results that are known",
        "an MMTests run (it has iter-0), an lkp result (it has stats.json, 0/stats.json or matrix.json), or "
        "one of the Phoronix Test Suite (it has composite.xml)",
    )


def mmtests(folder: Path) -> SampleSet:
    """Read one MMTests run: iterations are boots, repetitions of a benchmark its runs; seconds."""
    extractions = sorted(folder.glob("*.json"))
    if extractions:
        return _extractions(folder, extractions)
    found: dict[str, list[list[float]]] = {}
    iterations = sorted(folder.glob("iter-*"), key=lambda p: _digits(p.name))
    benchmarks = sorted({logs.parent.name for i in iterations for logs in i.glob("*/logs")})
    for place, iteration in enumerate(iterations):
        for benchmark in benchmarks:
            files = [
                (m, p)
                for p in (iteration / benchmark / "logs").iterdir()
                if (m := _TIME_FILE.fullmatch(p.name))
            ]
            for match, path in sorted(files, key=_place):
                timed = plain_numbers.timed(text_of(path), str(path))
                for name, series in timed.series.items():
                    prefix = f"{benchmark}." if len(benchmarks) > 1 else ""
                    metric = prefix + _metric(match, name)
                    boots = found.setdefault(metric, [])
                    boots += [[] for _ in range(place + 1 - len(boots))]
                    boots[place] += series.values
    if not found:
        names = ", ".join(benchmarks) or "none"
        raise wrong(
            str(folder),
            f"no time-*-* or *-*-*.time in the logs of its benchmarks ({names})",
            f"extract-mmtests.pl -d {folder.parent} -n {folder.name} -b BENCHMARK --print-json > "
            f"{folder.name}.json, and compare that",
        )
    return SampleSet(
        folder.name,
        {
            n: Series(tuple(tuple(b) for b in boots if b), "s", "lower")
            for n, boots in sorted(found.items(), key=_order)
        },
    )


def _extractions(folder: Path, files: Sequence[Path]) -> SampleSet:
    """Read what MMTests' own extraction said of each benchmark; its name comes first if there are several."""
    series: dict[str, Series] = {}
    for path in files:
        document = _object(path)
        if not looks_extracted(document):
            raise wrong(str(path), "this is not what extract-mmtests.pl --print-json prints")
        prefix = f"{path.stem}." if len(files) > 1 else ""
        series.update({prefix + n: s for n, s in extracted(document, str(path)).series.items()})
    return SampleSet(folder.name, series)


def _metric(match: re.Match[str], name: str) -> str:
    """Return what MMTests calls one of time's numbers: 'Elapsed-12', or 'real-pound_times-12'."""
    if match["case"] is None:
        return f"{_NAMES[name]}-{match['factor']}"
    return f"{_SHORT[name]}-{match['case']}-{match['cases']}"


def _place(item: tuple[re.Match[str], Path]) -> tuple[str, tuple[int, str], int]:
    """Return by what files are ordered: case, factor, repetition, the last two as numbers."""
    match = item[0]
    factor, run = match["factor"] or match["cases"], match["run"] or match["repeat"]
    return match["case"] or "", _digits(factor), int(run)


def looks_extracted(document: object) -> bool:
    """Return whether a JSON document is what extract-mmtests.pl prints."""
    return isinstance(document, dict) and isinstance(document.get("_ResultData"), dict)


def extracted(document: Mapping[str, Any], where: str) -> SampleSet:
    """Read extract-mmtests.pl's JSON: operation -> iterations of samples."""
    better = {"lower": "lower", "higher": "higher"}.get(str(document.get("_PreferredVal", "")).lower())
    series = {}
    for name, iterations in document["_ResultData"].items():
        boots = tuple(
            tuple(number(str(v), f"{where}: '{name}'") for v in one["Values"])
            for one in iterations
            if one and one.get("Values")
        )
        if boots:
            series[str(name)] = Series(boots, "", better)  # type: ignore[arg-type]
    if not series:
        raise wrong(where, "MMTests extracted no sample")
    return SampleSet(str(document.get("_TestName") or where), series)


def lkp(folder: Path) -> SampleSet:
    """Read the results of one commit in lkp's layout; every run is a boot of its own."""
    own = folder / _STATS
    runs = [own] if own.exists() else sorted(folder.glob(_RUNS), key=lambda p: _digits(p.parent.name))
    found: dict[str, list[float]] = {}
    if runs:
        for path in runs:
            for name, value in _object(path).items():
                last = value[-1] if isinstance(value, list) and value else value
                if isinstance(last, int | float) and not isinstance(last, bool):
                    found.setdefault(name, []).append(float(last))
    else:
        path = folder / "matrix.json"
        for name, values in _object(path).items():
            if isinstance(values, list):
                found[name] = [float(v) for v in values if isinstance(v, int | float)]
    found = {n: v for n, v in found.items() if v and not n.startswith("stats_source")}
    if not found:
        raise wrong(
            str(folder), "its statistics hold no number", "lkp's job must have finished at least once"
        )
    short = [n for n, v in found.items() if 0 < len(v) < len(runs)]
    notes = (f"{len(short)} statistics are missing in some runs, such as {short[0]}",) if short else ()
    return SampleSet(
        folder.name, {n: Series(tuple((x,) for x in v)) for n, v in sorted(found.items())}, notes=notes
    )


def _object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(text_of(path))
    except json.JSONDecodeError as error:
        raise wrong(
            f"{path}:{error.lineno}", "not valid JSON", "delete this run's folder, or repeat it", error.msg
        ) from error
    if not isinstance(value, dict):
        raise wrong(str(path), "an object of statistics was expected")
    return value


def _digits(text: str) -> tuple[int, str]:
    match = re.search(r"\d+", text)
    return (int(match[0]) if match else 0, text)


def _order(item: tuple[str, list[list[float]]]) -> tuple[str, tuple[int, str]]:
    name, _, factor = item[0].rpartition("-")
    return name, _digits(factor)
