"""fio's JSON output (`--output-format=json`): rates, latencies and CPU use of every job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bisector.adapters.parsers.input_text import json_number, json_object, malformed
from bisector.model.goal import Direction
from bisector.stats.samples import SampleSeries, SampleSet

_WAYS = ("read", "write", "trim", "sync")
_PERCENTILES = ("50.000000", "95.000000", "99.000000", "99.900000", "99.990000")
"""Percentiles used of those that fio lists: the median, the tail, and the far tail that a database waits
for."""


def looks_like(document: object) -> bool:
    """Return whether a JSON document is fio's."""
    return isinstance(document, dict) and "jobs" in document and any("fio" in key for key in document)


def read(documents: Sequence[Mapping[str, Any]], where: str) -> SampleSet:
    """Read one or several outputs of the same job file; each is one run. Raises RequestError."""
    found: dict[str, list[float]] = {}
    kinds: dict[str, tuple[str, Direction]] = {}
    notes = []
    for document in documents:
        jobs = document["jobs"]
        if not isinstance(jobs, list) or not jobs:
            raise malformed(where, "fio's output has no jobs", "look at fio's own messages")
        for job in (json_object(one, where) for one in jobs):
            if job.get("error"):
                notes.append(f"fio's job '{job.get('jobname')}' ended with error {job['error']}")
            for name, (value, unit, better) in _job(job, where, many=len(jobs) > 1).items():
                found.setdefault(name, []).append(value)
                kinds[name] = unit, better
    if not found:
        raise malformed(where, "fio did no input or output", "look at fio's own messages")
    return SampleSet(
        where,
        {name: SampleSeries((tuple(v),), *kinds[name]) for name, v in found.items()},
        notes=tuple(notes),
    )


def _job(job: Mapping[str, Any], where: str, *, many: bool) -> dict[str, tuple[float, str, Direction]]:
    prefix = f"{job.get('jobname', 'job')}." if many else ""
    out: dict[str, tuple[float, str, Direction]] = {}
    for way in _WAYS:
        part = job.get(way)
        if not isinstance(part, dict) or not part.get("total_ios"):
            continue
        at = f"{prefix}{way}."
        if "iops" in part:
            out[f"{at}iops"] = json_number(part["iops"], where), "IOPS", "higher"
        if "bw_bytes" in part:
            out[f"{at}bw"] = json_number(part["bw_bytes"], where), "B/s", "higher"
        for kind in ("lat", "clat"):
            name, scale = (f"{kind}_ns", 1e-3) if f"{kind}_ns" in part else (kind, 1.0)
            latency = part.get(name)
            if not isinstance(latency, dict):
                continue
            if kind == "lat":
                out[f"{at}lat-mean"] = scale * json_number(latency.get("mean"), where), "us", "lower"
            percentiles = json_object(latency.get("percentile", {}), where)
            for percentile in _PERCENTILES:
                value = percentiles.get(percentile)
                if value is not None:
                    short = percentile.rstrip("0").rstrip(".")
                    out[f"{at}{kind}-p{short}"] = scale * json_number(value, where), "us", "lower"
    for name in ("usr_cpu", "sys_cpu"):
        if name in job:
            out[f"{prefix}{name}"] = json_number(job[name], where), "%", "lower"
    return out
