"""hyperfine's `--export-json`: the time of every run of each command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bisector.adapters.parsers.input_text import json_number, json_object, malformed
from bisector.stats.samples import SampleSeries, SampleSet

_TIME = "time"
"""The metric's name where one command was measured; of several each is named as its command."""


def looks_like(document: object) -> bool:
    """Return whether a JSON document is hyperfine's."""
    results = document.get("results") if isinstance(document, dict) else None
    return isinstance(results, list) and any(
        isinstance(r, dict) and {"command", "mean"} <= r.keys() for r in results
    )


def read(document: Mapping[str, Any], where: str) -> SampleSet:
    """Read the runs of all commands. Raises RequestError."""
    results = [json_object(one, where) for one in document["results"]]
    found: dict[str, SampleSeries] = {}
    notes = []
    for result in results:
        command = str(result.get("command", ""))
        name = _TIME if len(results) == 1 else command
        times = result.get("times")
        if not isinstance(times, list) or not times:
            raise malformed(
                where, f"'{command}' has no times of single runs", "a mean alone cannot be compared"
            )
        if name in found:
            raise malformed(where, f"'{command}' is there twice", "name commands with hyperfine's -n")
        found[name] = SampleSeries((tuple(json_number(value, where) for value in times),), "s", "lower")
        failed = [code for code in result.get("exit_codes") or () if code != 0]
        if failed:
            notes.append(f"'{command}' ended with code {failed[0]} in {len(failed)} of {len(times)} runs")
    return SampleSet(where, found, notes=tuple(notes))
