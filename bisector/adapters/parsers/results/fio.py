"""fio's JSON output (`--output-format=json`): rates, latencies and CPU use of every job."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bisector.adapters.parsers.input_text import json_count, json_number, json_object, malformed
from bisector.model.goal import Direction
from bisector.stats.samples import SampleSeries, SampleSet

_WAYS = ("read", "write", "trim", "sync")
_PERCENTILES = ("50.000000", "95.000000", "99.000000", "99.900000", "99.990000")
"""Percentiles used of those that fio lists: the median, the tail, and the far tail that a database waits
for."""


_PERCENTILE = re.compile(r"lat-p[0-9.]+$")


def looks_like(document: object) -> bool:
    """Return whether a JSON document is fio's."""
    return isinstance(document, dict) and "jobs" in document and any("fio" in key for key in document)


def read(documents: Sequence[Mapping[str, Any]], where: str) -> SampleSet:
    """Read one or several outputs of the same job file; each is one run. Raises RequestError."""
    found: dict[str, list[float]] = {}
    kinds: dict[str, tuple[str, Direction]] = {}
    notes: list[str] = []
    for document in documents:
        jobs = document["jobs"]
        if not isinstance(jobs, list) or not jobs:
            raise malformed(where, "fio's output has no jobs", "look at fio's own messages")
        by_name: dict[str, list[Mapping[str, Any]]] = {}
        for job in (json_object(one, where) for one in jobs):
            by_name.setdefault(str(job.get("jobname", "job")), []).append(job)
            if job.get("error"):
                notes.append(f"fio's job '{job.get('jobname')}' ended with error {job['error']}")
        for job_name, clones in by_name.items():
            prefix = f"{job_name}." if len(jobs) > 1 else ""
            numbers = _combined([_job(job, where, prefix) for job in clones])
            if len(clones) > 1 and any(map(_PERCENTILE.search, numbers)):
                notes.append(
                    f"fio's job '{job_name}' lists {len(clones)} processes: percentiles are means of theirs "
                    "('group_reporting' gives those of all)"
                )
            for name, number in numbers.items():
                found.setdefault(name, []).append(number.value)
                kinds[name] = number.unit, number.better
    if not found:
        raise malformed(where, "fio did no input or output", "look at fio's own messages")
    return SampleSet(
        where,
        {name: SampleSeries((tuple(v),), *kinds[name]) for name, v in found.items()},
        notes=tuple(dict.fromkeys(notes)),
    )


class _Number(NamedTuple):
    """One number of a job. weight: of its share in a mean over processes; None: it adds up."""

    value: float
    unit: str
    better: Direction
    weight: float | None = None


def _combined(clones: Sequence[Mapping[str, _Number]]) -> dict[str, _Number]:
    """Return the numbers of processes that fio started for one job ('numjobs'): they are one run."""
    out: dict[str, _Number] = {}
    for name in dict.fromkeys(name for clone in clones for name in clone):
        numbers = [clone[name] for clone in clones if name in clone]
        if len(numbers) == 1:  # to the last digit
            out[name] = numbers[0]
            continue
        total = math.fsum(n.value if n.weight is None else n.value * n.weight for n in numbers)
        weight = math.fsum(n.weight or 0.0 for n in numbers)
        out[name] = numbers[0]._replace(value=total / weight if weight else total)
    return out


def _job(job: Mapping[str, Any], where: str, prefix: str) -> dict[str, _Number]:
    out: dict[str, _Number] = {}
    for way in _WAYS:
        part = job.get(way)
        if not isinstance(part, dict) or not part.get("total_ios"):
            continue
        at, ios = f"{prefix}{way}.", json_count(part["total_ios"], where)
        if "iops" in part:
            out[f"{at}iops"] = _Number(json_number(part["iops"], where), "IOPS", "higher")
        if "bw_bytes" in part:
            out[f"{at}bw"] = _Number(json_number(part["bw_bytes"], where), "B/s", "higher")
        for kind in ("lat", "clat"):
            name, scale = (f"{kind}_ns", 1e-3) if f"{kind}_ns" in part else (kind, 1.0)
            latency = part.get(name)
            if not isinstance(latency, dict):
                continue
            if kind == "lat":
                out[f"{at}lat-mean"] = _Number(
                    scale * json_number(latency.get("mean"), where), "us", "lower", ios
                )
            percentiles = json_object(latency.get("percentile", {}), where)
            for percentile in _PERCENTILES:
                value = percentiles.get(percentile)
                if value is not None:
                    short = percentile.rstrip("0").rstrip(".")
                    out[f"{at}{kind}-p{short}"] = _Number(
                        scale * json_number(value, where), "us", "lower", ios
                    )
    for name in ("usr_cpu", "sys_cpu"):
        if name in job:
            out[f"{prefix}{name}"] = _Number(json_number(job[name], where), "%", "lower", 1.0)
    return out
