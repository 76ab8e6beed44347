"""One run's metrics from the files that it left, in any form that `compare` reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bisector.adapters.parsers.results.result_format import read
from bisector.adapters.parsers.workload_output import OutputError, ratios
from bisector.errors import RequestError, nearest
from bisector.ports import MetricSpec
from bisector.stats.samples import SampleSeries

_MAX_NAMED = 12
"""Metrics that an error lists where one is missing; some suites write hundreds."""


def values(place: Path, metrics: Sequence[MetricSpec]) -> dict[str, float]:
    """Return every metric's value in its own unit: the mean of what the suite repeated within this run.

    Repetitions within a run are not independent samples, so they count as one. `MetricSpec.at` is the name
    that `compare` shows. Raises OutputError: unreadable, a metric is missing or in another unit.
    """
    try:
        sets = read(str(place))
    except RequestError as error:
        raise OutputError("\n".join(part for part in (error.message, error.details) if part)) from error
    if len(sets) > 1:
        names = ", ".join(found.name for found in sets)
        raise OutputError(f"the results are of {len(sets)} systems ({names}); one run is one system's")
    series, missing = sets[0].series, sets[0].missing
    out = {}
    for metric in metrics:
        name = metric.at or metric.name
        if metric.ratio is not None:
            continue
        if name in series:
            out[metric.name] = _mean(metric, series[name])
        elif not metric.optional:
            raise OutputError(_absent(name, series, missing))
    return out | ratios(out, metrics)


def _mean(metric: MetricSpec, series: SampleSeries) -> float:
    if series.unit and series.unit != metric.unit:
        raise OutputError(
            f"the metric '{metric.name}' is in '{series.unit}', its manifest says '{metric.unit}'"
        )
    if not series.values:
        raise OutputError(f"the metric '{metric.name}' has no value in the results")
    return sum(series.values) / len(series.values)


def _absent(name: str, series: Mapping[str, SampleSeries], missing: Mapping[str, str]) -> str:
    if name in missing:
        return f"the results have no metric '{name}': {missing[name]}"
    known = sorted(series)
    more = f" and {len(known) - _MAX_NAMED} more" if len(known) > _MAX_NAMED else ""
    there = ", ".join(known[:_MAX_NAMED])
    return f"the results have no metric '{name}'{nearest(name, known)} (there are: {there}{more})"
