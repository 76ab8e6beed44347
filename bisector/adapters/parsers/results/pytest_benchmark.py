"""pytest-benchmark's JSON (`--benchmark-json`): the time of every round of each test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bisector.adapters.parsers.input_text import json_number, json_object, malformed
from bisector.stats.samples import SampleSeries, SampleSet


def looks_like(document: object) -> bool:
    """Return whether a JSON document is pytest-benchmark's."""
    return (
        isinstance(document, dict)
        and isinstance(document.get("benchmarks"), list)
        and isinstance(document.get("machine_info"), dict)
    )


def read(document: Mapping[str, Any], where: str) -> SampleSet:
    """Read the rounds of all tests, which are runs of one boot. Raises RequestError."""
    found: dict[str, SampleSeries] = {}
    for one in (json_object(one, where) for one in document["benchmarks"]):
        name = str(one.get("fullname") or one.get("name", ""))
        times = json_object(one.get("stats"), where).get("data")
        if not isinstance(times, list) or not times:
            raise malformed(
                where,
                f"'{name}' has no times of single rounds",
                "a mean alone cannot be compared: write it with --benchmark-json",
            )
        if name in found:
            raise malformed(where, f"'{name}' is there twice", "give each test a name of its own")
        found[name] = SampleSeries((tuple(json_number(value, where) for value in times),), "s", "lower")
    if not found:
        raise malformed(where, "there is no benchmark in it", "look at pytest's own messages")
    return SampleSet(where, found)
