"""Monitors: what may be asked for, and what a testbed cannot give."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.errors import RequestError
from bisector.schemas.workload.manifest import WorkloadManifest
from bisector.schemas.workload.monitors import Monitors, shortfalls
from bisector.schemas.workload.workload import load_workload


def asked(*words: str) -> Monitors:
    return Monitors().with_requested(words)


def manifest(**keys: object) -> WorkloadManifest:
    metric = {"name": "real", "unit": "s", "better": "lower", "threshold": "5%", "decides": True}
    base = {"name": "toy", "description": "d", "metrics": [metric], "run": ["toy"], "files": ["toy"]}
    return WorkloadManifest.model_validate({**base, **keys})


def test_a_manifest_names_monitors_with_and_without_options() -> None:
    assert manifest(monitors=["proc", "dmesg"]).monitors.names() == ("proc", "dmesg")
    found = manifest(monitors={"perf-stat": {"repeat": 5}, "dmesg": None}).monitors
    assert found.perf_stat is not None
    assert (found.perf_stat.repeat, found.names()) == (5, ("perf-stat", "dmesg"))
    assert manifest().monitors.names() == ()


def test_only_perf_needs_a_package_and_it_is_asked_for_once() -> None:
    assert manifest(monitors=["proc", "ftrace"]).packages() == ()
    both = manifest(monitors=["perf-stat", "perf-record"], requires={"packages": ["fio", "linux-perf"]})
    assert both.packages() == ("fio", "linux-perf")


def test_a_misspelt_monitor_is_told_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "toy").touch()
    (tmp_path / "workload.yaml").write_text(
        "name: toy\ndescription: d\nrun: [toy]\nfiles: [toy]\n"
        "metrics: [{name: real, unit: s, better: lower, threshold: 5%, decides: true}]\n"
        "monitors: {perf-stats: {}}\n"
    )
    with pytest.raises(RequestError) as caught:
        load_workload(str(tmp_path))
    assert "unknown key 'monitors.perf-stats'; did you mean 'perf-stat'?" in caught.value.message


def test_the_command_line_adds_to_the_manifest_and_replaces_lists() -> None:
    found = asked("ftrace=schedule,kmem_cache_*").with_requested(["ftrace", "dmesg", "proc=/proc/stat"])
    assert found.ftrace is not None
    assert found.ftrace.functions == ("schedule", "kmem_cache_*")
    assert found.names() == ("ftrace", "proc", "dmesg")
    assert asked("perf-record=999").perf_record is not None


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("perfstat", "no monitor 'perfstat'; did you mean 'perf-stat'?"),
        ("dmesg=x", "'dmesg' takes no list"),
        ("proc=", "nothing follows '='"),
        ("proc=/etc/shadow", "must be a path below /proc/ or /sys/"),
        ("proc=/proc/../etc/shadow", "must be a path below /proc/ or /sys/"),
        ("perf-record=often", "a whole number"),
    ],
)
def test_what_cannot_be_asked_for(word: str, told: str) -> None:
    with pytest.raises(RequestError) as caught:
        asked(word)
    assert told in caught.value.message


def test_what_a_place_cannot_give_is_said_beforehand() -> None:
    everything = asked("perf-stat", "perf-record", "ftrace", "proc", "dmesg")
    assert list(shortfalls(everything, ["debian"], ["wall"], ["guest", "ftrace"])) == []
    old = [name for name, _ in shortfalls(everything, ["initramfs"], ["wall"], ["ftrace"])]
    assert old == ["perf-stat", "perf-record"]
    emulated = dict(shortfalls(everything, ["debian"], ["instructions"], []))
    assert set(emulated) == {"perf-stat", "perf-record", "ftrace"}
    assert "not supported there" in emulated["perf-stat"]
    assert "kernel: [ftrace]" in emulated["ftrace"]
