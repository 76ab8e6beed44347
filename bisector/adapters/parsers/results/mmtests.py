"""Results of MMTests: a run's folder, and what its own extraction prints.

Where `extract-mmtests.pl --print-json` was written to RUN/BENCHMARK.json, that is read. Without it GNU time's
files in RUN/iter-N/BENCHMARK/logs are: time-FACTOR-REPETITION, and poundtime's CASE-FACTOR-REPETITION.time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bisector.adapters.parsers.input_text import (
    json_list,
    json_number,
    json_object,
    malformed,
    natural_order,
    parse_number,
    read_json_object,
    read_text,
    shown,
)
from bisector.adapters.parsers.results import plain_numbers
from bisector.stats.samples import SampleSeries, SampleSet

_TIME_FILE = re.compile(
    r"(?:time-(?P<factor>.+)-(?P<run>\d+)|(?P<case>.+)-(?P<cases>\d+)-(?P<repeat>\d+)\.time)(?:\.gz|\.xz)?"
)
_METRICS_OF_FACTORS = {"real": "Elapsed", "user": "User", "sys": "System"}
_METRICS_OF_CASES = {"real": "real", "user": "user", "sys": "syst"}
"""MMTests' names of time's numbers, in benchmarks with one case and with several."""


def looks_like(folder: Path) -> bool:
    """Return whether a folder is that of an MMTests run."""
    return any(folder.glob("iter-*"))


def read(folder: Path) -> SampleSet:
    """Read one MMTests run: iterations are boots, repetitions of a benchmark its runs; seconds."""
    extractions = sorted(folder.glob("*.json"))
    if extractions:
        return _extractions(folder, extractions)
    found: dict[str, list[list[float]]] = {}
    iterations = sorted(folder.glob("iter-*"), key=lambda p: natural_order(p.name))
    benchmarks = sorted({logs.parent.name for i in iterations for logs in i.glob("*/logs")})
    for place, iteration in enumerate(iterations):
        for benchmark in benchmarks:
            files = [
                (m, p)
                for p in (iteration / benchmark / "logs").iterdir()
                if (m := _TIME_FILE.fullmatch(p.name))
            ]
            for match, path in sorted(files, key=_place):
                timed = plain_numbers.timed(read_text(path), str(path))
                for name, series in timed.series.items():
                    prefix = f"{benchmark}." if len(benchmarks) > 1 else ""
                    metric = prefix + _metric(match, name)
                    boots = found.setdefault(metric, [])
                    boots += [[] for _ in range(place + 1 - len(boots))]
                    boots[place] += series.values
    if not found:
        names = ", ".join(benchmarks) or "none"
        raise malformed(
            str(folder),
            f"no time-*-* or *-*-*.time in the logs of its benchmarks ({names})",
            f"extract-mmtests.pl -d {folder.parent} -n {folder.name} -b BENCHMARK --print-json > "
            f"{folder.name}.json, and compare that",
        )
    return SampleSet(
        folder.name,
        {
            n: SampleSeries(tuple(tuple(b) for b in boots if b), "s", "lower")
            for n, boots in sorted(found.items(), key=_order)
        },
    )


def _extractions(folder: Path, files: Sequence[Path]) -> SampleSet:
    """Read MMTests' own extraction of each benchmark; its name comes first if there are several."""
    series: dict[str, SampleSeries] = {}
    for path in files:
        document = read_json_object(path)
        if not looks_extracted(document):
            raise malformed(str(path), "this is not what extract-mmtests.pl --print-json prints")
        prefix = f"{path.stem}." if len(files) > 1 else ""
        series.update({prefix + n: s for n, s in extracted(document, str(path)).series.items()})
    return SampleSet(folder.name, series)


def _metric(match: re.Match[str], name: str) -> str:
    """Return what MMTests calls one of time's numbers: 'Elapsed-12', or 'real-pound_times-12'."""
    if match["case"] is None:
        return f"{_METRICS_OF_FACTORS[name]}-{match['factor']}"
    return f"{_METRICS_OF_CASES[name]}-{match['case']}-{match['cases']}"


def _place(item: tuple[re.Match[str], Path]) -> tuple[str, tuple[int, str], int]:
    """Return by what files are ordered: case, factor, repetition, the last two as numbers."""
    match = item[0]
    factor, run = match["factor"] or match["cases"], match["run"] or match["repeat"]
    return match["case"] or "", natural_order(factor), natural_order(run)[0]


def looks_extracted(document: object) -> bool:
    """Return whether a JSON document is what extract-mmtests.pl prints."""
    return isinstance(document, dict) and isinstance(document.get("_ResultData"), dict)


def extracted(document: Mapping[str, Any], where: str) -> SampleSet:
    """Read extract-mmtests.pl's JSON: operation -> iterations of samples."""
    better = {"lower": "lower", "higher": "higher"}.get(str(document.get("_PreferredVal", "")).lower())
    series = {}
    for name, iterations in document["_ResultData"].items():
        at = f"{where}: {shown(name)}"
        samples = [json_object(one, at).get("Values") for one in json_list(iterations, at) if one]
        boots = tuple(tuple(_value(v, at) for v in json_list(one, at)) for one in samples if one)
        if boots:
            series[str(name)] = SampleSeries(boots, "", better)  # type: ignore[arg-type]
    if not series:
        raise malformed(where, "MMTests extracted no sample")
    return SampleSet(str(document.get("_TestName") or where), series)


def _value(value: object, where: str) -> float:
    return parse_number(value, where) if isinstance(value, str) else json_number(value, where)


def _order(item: tuple[str, list[list[float]]]) -> tuple[str, tuple[int, str]]:
    name, _, factor = item[0].rpartition("-")
    return name, natural_order(factor)
