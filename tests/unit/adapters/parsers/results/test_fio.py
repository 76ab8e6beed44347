"""fio's JSON of one run, of several, and of several jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.result_samples import boots, only, written


def fio(iops: float, **more: Any) -> dict[str, Any]:
    read_part = {
        "total_ios": 1000,
        "iops": iops,
        "bw_bytes": 4096 * iops,
        "lat_ns": {"mean": 1500.0},
        "clat_ns": {"percentile": {"50.000000": 1000, "99.000000": 9000, "99.990000": 20000}},
    }
    job = {
        "jobname": "log",
        "error": 0,
        "read": read_part,
        "write": {"total_ios": 0},
        "usr_cpu": 2.0,
        "sys_cpu": 8.0,
    }
    return {"fio version": "fio-3.33", "jobs": [{**job, **more}]}


def test_fio_once_and_repeated(tmp_path: Path) -> None:
    found = only(
        written(tmp_path, "fio: some warning\n" + json.dumps(fio(100)) + "\n" + json.dumps(fio(110)))
    )
    assert boots(found)["read.iops"] == ((100.0, 110.0),)
    assert (found.series["read.iops"].unit, found.series["read.iops"].better) == ("IOPS", "higher")
    latency = found.series["read.clat-p99"]
    assert (latency.boots, latency.unit, latency.better) == (((9.0, 9.0),), "us", "lower")
    assert "write.iops" not in found.series
    assert found.series["sys_cpu"].boots == ((8.0, 8.0),)


def test_fio_of_several_jobs_and_with_an_error(tmp_path: Path) -> None:
    document = fio(100)
    document["jobs"].append({**document["jobs"][0], "jobname": "data", "error": 5})
    found = only(written(tmp_path, json.dumps(document)))
    assert {"log.read.iops", "data.read.iops"} <= set(found.series)
    assert found.notes == ("fio's job 'data' ended with error 5",)


def test_fio_processes_of_one_job_are_one_run(tmp_path: Path) -> None:
    document = fio(100)
    first = document["jobs"][0]
    more = {"total_ios": 3000, "iops": 300, "bw_bytes": 4096 * 300, "lat_ns": {"mean": 2500.0}}
    document["jobs"].append({**first, "read": {**first["read"], **more}, "usr_cpu": 4.0})
    found = only(written(tmp_path, json.dumps(document) + json.dumps(document)))
    assert boots(found)["log.read.iops"] == ((400.0, 400.0),)
    assert boots(found)["log.read.bw"] == ((4096.0 * 400, 4096.0 * 400),)
    assert boots(found)["log.read.lat-mean"] == ((2.25, 2.25),)
    assert boots(found)["log.usr_cpu"] == ((3.0, 3.0),)
    assert len(found.notes) == 1
    assert "lists 2 processes" in found.notes[0]
