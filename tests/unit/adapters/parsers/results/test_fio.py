"""fio's JSON of one run, of several, and of several jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bisector.errors import RequestError
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


def test_percentiles_of_processes_are_weighted_by_what_each_has_done(tmp_path: Path) -> None:
    document = fio(100)
    first = document["jobs"][0]
    more = {"total_ios": 3000, "clat_ns": {"percentile": {"50.000000": 5000, "99.000000": 9000}}}
    document["jobs"].append({**first, "read": {**first["read"], **more}})
    found = boots(only(written(tmp_path, json.dumps(document))))
    assert found["log.read.clat-p50"] == ((4.0,),)
    assert found["log.read.clat-p99.99"] == ((20.0,),), "of the one process that tells it"
    assert found["log.read.lat-mean"] == ((1.5,),)


def test_old_versions_write_microseconds(tmp_path: Path) -> None:
    part = {"total_ios": 10, "clat": {"mean": 7.0, "percentile": {"50.000000": 40}}, "lat": {"mean": 50.0}}
    found = only(
        written(tmp_path, json.dumps(fio(1, read=part, sync={"total_ios": 3, "lat_ns": {"mean": 9e3}})))
    )
    assert {name: (one.boots, one.unit) for name, one in found.series.items() if "lat" in name} == {
        "read.lat-mean": (((50.0,),), "us"),
        "read.clat-p50": (((40.0,),), "us"),
        "sync.lat-mean": (((9.0,),), "us"),
    }


def test_rates_and_times_have_their_directions(tmp_path: Path) -> None:
    found = only(written(tmp_path, json.dumps(fio(100)))).series
    better = {name: one.better for name, one in found.items()}
    assert {name for name in better if better[name] == "higher"} == {"read.iops", "read.bw"}
    assert {"read.lat-mean", "read.clat-p50", "usr_cpu", "sys_cpu"} <= better.keys()
    assert found["read.bw"].boots == ((409600.0,),) and found["read.bw"].unit == "B/s"


def test_each_run_says_once_what_went_wrong_with_it(tmp_path: Path) -> None:
    text = json.dumps(fio(100, error=5))
    assert only(written(tmp_path, text + text)).notes == ("fio's job 'log' ended with error 5",)
    assert only(written(tmp_path, json.dumps(fio(100)))).notes == ()


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            {"fio version": "fio-3", "jobs": [{"jobname": "a", "read": {"total_ios": 0, "iops": 0}}]},
            "did no input",
        ),
        ({"fio version": "fio-3", "jobs": {}}, "has no jobs"),
        ({"jobs": [1, 2], "of": [3]}, None),
    ],
)
def test_documents_without_io(document: dict[str, Any], said: str | None, tmp_path: Path) -> None:
    place = written(tmp_path, json.dumps(document))
    if said is None:  # nothing in it says fio
        assert boots(only(place)) == {"jobs": ((1.0, 2.0),), "of": ((3.0,),)}
        return
    with pytest.raises(RequestError, match=said):
        only(place)
