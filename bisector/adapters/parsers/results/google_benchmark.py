"""Google Benchmark's JSON (`--benchmark_format=json`): every repetition of each benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bisector.adapters.parsers.input_text import json_number, json_object, malformed
from bisector.model.goal import Direction
from bisector.stats.samples import SampleSeries, SampleSet

_TIMES = ("real_time", "cpu_time")
"""Of one iteration, on average, in the benchmark's `time_unit`."""
_RATES = {"bytes_per_second": "B/s", "items_per_second": "items/s"}
"""Counters whose direction is known; of others unit and direction are the program's own."""
_NOT_MEASURED = frozenset(
    ("family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads", "iterations")
)
"""Numbers that say which repetition this is, and how long it was chosen to be."""


def looks_like(document: object) -> bool:
    """Return whether a JSON document is Google Benchmark's."""
    return (
        isinstance(document, dict)
        and isinstance(document.get("benchmarks"), list)
        and isinstance(document.get("context"), dict)
    )


def read(document: Mapping[str, Any], where: str) -> SampleSet:
    """Read the repetitions of all benchmarks, which are runs of one boot. Raises RequestError."""
    found: dict[str, list[float]] = {}
    kinds: dict[str, tuple[str, Direction | None]] = {}
    missing: dict[str, str] = {}
    instances: dict[str, object] = {}
    for one in (json_object(one, where) for one in document["benchmarks"]):
        if "run_type" not in one:
            raise malformed(
                where, "repetitions and their means are not told apart", "take version 1.5 or newer"
            )
        if one["run_type"] != "iteration":
            continue
        name = str(one.get("run_name", ""))
        instance = one.get("family_index"), one.get("per_family_instance_index")
        if instances.setdefault(name, instance) != instance:
            raise malformed(where, f"there are two benchmarks '{name}'", "give each a name of its own")
        if one.get("error_occurred") or "skip_message" in one:
            why = one.get("error_message") or one.get("skip_message") or "no reason is told"
            missing |= {f"{name}.{time}": str(why) for time in _TIMES}
            continue
        for key, unit, better in _numbers(one):
            metric = f"{name}.{key}"
            if kinds.setdefault(metric, (unit, better)) != (unit, better):
                raise malformed(where, f"'{name}' is in {kinds[metric][0]} and in {unit}")
            found.setdefault(metric, []).append(json_number(one[key], where))
    if not found and not missing:
        raise malformed(
            where,
            "there is no repetition of a benchmark",
            "a mean alone cannot be compared: measure without --benchmark_report_aggregates_only",
        )
    series = {name: SampleSeries((tuple(values),), *kinds[name]) for name, values in found.items()}
    return SampleSet(where, series, missing={k: v for k, v in missing.items() if k not in series})


def _numbers(one: Mapping[str, Any]) -> list[tuple[str, str, Direction | None]]:
    """Return key, unit and direction of what a repetition has: times, rates, the program's own counters."""
    unit = str(one.get("time_unit", "ns"))
    known: dict[str, tuple[str, Direction | None]] = {
        **dict.fromkeys(_TIMES, (unit, "lower")),
        **{key: (rate, "higher") for key, rate in _RATES.items()},
    }
    counters = (key for key, value in one.items() if type(value) in (int, float) and key not in _NOT_MEASURED)
    keys = dict.fromkeys([*(key for key in known if key in one), *counters])
    return [(key, *known.get(key, ("", None))) for key in keys]
