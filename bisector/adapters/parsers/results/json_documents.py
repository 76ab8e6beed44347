"""JSON documents of samples: perfbisect's own form, and plain {"metric": [run, ...]}.

The own form keeps all that a comparison can use:

    {"name": "BWC", "sets": [{"testbed": "westmere", "sizes": {"text": 7277206},
                              "missing": {"L1-misses": "not supported"},
                              "metrics": {"cycles": {"values": [[...], [...]], "unit": "", "better": "lower"},
                                          "elapsed": {"mean": 0.194, "error": 0.0044, "runs": 50}}}]}

A list of lists means boots of runs; `error` is the relative standard error of a mean (perf stat's +-%/100).
One set alone may stand in the document itself, without "sets".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bisector.adapters.parsers.input_text import (
    json_count,
    json_number,
    json_object,
    malformed,
    shown,
)
from bisector.schemas.documents.document import shortened
from bisector.stats.samples import SampleSeries, SampleSet

FORM = '{"metric": [run, ...]}, where a list of lists means boots of runs'

_SET_KEYS = {"name", "testbed", "metrics", "missing", "sizes"}
_METRIC_KEYS = {"values", "mean", "error", "runs", "unit", "better"}


def read(document: Any, where: str) -> list[SampleSet]:  # noqa: ANN401 - whatever the JSON holds
    """Return the sets of a document, one a testbed. Raises RequestError."""
    if isinstance(document, list):
        return [SampleSet(where, {"value": SampleSeries(_boots(document, where))})]
    if not isinstance(document, dict):
        raise malformed(where, "a list or an object was expected", f"expected {FORM}")
    if "sets" in document:
        _known(document, {"name", "sets"}, where)
        sets = document["sets"]
        if not isinstance(sets, list) or not sets:
            raise malformed(where, "'sets' must be a list of sets, one a testbed")
        return [
            _set({"name": document.get("name", where), **json_object(one, where)}, f"{where}, set {i + 1}")
            for i, one in enumerate(sets)
        ]
    if "metrics" in document and isinstance(document["metrics"], dict):
        return [_set({"name": where, **document}, where)]
    if not document:
        raise malformed(where, "there is nothing in it", f"expected {FORM}")
    return [
        SampleSet(
            where,
            {name: SampleSeries(_boots(v, f"{where}: '{shortened(name)}'")) for name, v in document.items()},
        )
    ]


def _set(data: Mapping[str, Any], where: str) -> SampleSet:
    _known(data, _SET_KEYS, where)
    metrics, missing, sizes = (
        json_object(data.get(key, {}), f"{where}: '{key}'") for key in ("metrics", "missing", "sizes")
    )
    return SampleSet(
        name=str(data["name"]),
        testbed=str(data.get("testbed", "")),
        series={name: _metric(v, f"{where}: '{shortened(name)}'") for name, v in metrics.items()},
        missing={str(k): str(v) for k, v in missing.items()},
        sizes={k: json_count(v, f"{where}: '{k}'") for k, v in sizes.items()},
    )


def _metric(value: Any, where: str) -> SampleSeries:  # noqa: ANN401 - whatever the JSON holds
    if not isinstance(value, dict):
        return SampleSeries(_boots(value, where))
    _known(value, _METRIC_KEYS, where)
    better = value.get("better")
    if better not in (None, "lower", "higher"):
        raise malformed(where, f"'better' is {shown(str(better))}", "lower or higher")
    unit = str(value.get("unit", ""))
    if "values" in value:
        return SampleSeries(_boots(value["values"], where), unit, better)
    if "mean" not in value:
        raise malformed(where, "there are neither 'values' nor a 'mean'")
    error = value.get("error")
    return SampleSeries(
        _boots(value["mean"], where),
        unit,
        better,
        None if error is None else abs(json_number(error, where)),
        json_count(value.get("runs", 0), where),
    )


def _known(data: Any, keys: set[str], where: str) -> None:  # noqa: ANN401 - whatever the JSON holds
    if not isinstance(data, dict):
        raise malformed(where, "an object was expected")
    for key in data:
        if key not in keys:
            raise malformed(where, f"unknown key {shown(key)}", f"known: {', '.join(sorted(keys))}")


def _boots(value: Any, where: str) -> tuple[tuple[float, ...], ...]:  # noqa: ANN401 - whatever the JSON holds
    def one(v: object) -> float:
        return json_number(v, where, f"expected {FORM}")

    if not isinstance(value, list):
        return ((one(value),),)
    if not value:
        raise malformed(where, "has no value", f"expected {FORM}")
    if all(isinstance(part, list) for part in value):
        return tuple(tuple(map(one, part)) for part in value if part)
    return (tuple(map(one, value)),)
