"""Monitors: what may be asked for, what the agent is told, what comes of the files that it sends."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

import pytest

from bisector.adapters.agent.monitor_output import MonitorOutput, deadline_seconds
from bisector.adapters.agent.monitors import plan_text, plans, summarise
from bisector.adapters.agent.monitors.counters import changes
from bisector.adapters.agent.monitors.monitor_files import Summary
from bisector.errors import InfrastructureError, RequestError
from bisector.model.records import MonitorValue
from bisector.ports import Monitor
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
        ("dmesg=x", "'dmesg' takes nothing"),
        ("proc=", "nothing follows '='"),
        ("proc=/etc/shadow", "must be a path below /proc/ or /sys/"),
        ("proc=/proc/../etc/shadow", "must be a path below /proc/ or /sys/"),
        ("perf-record=often", "valid integer"),
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


_STAT_COMMAND = "perf stat -j -r 3 -o perfbisect-observed/stat.json -e cycles --"


def test_what_the_agent_is_told() -> None:
    text = plan_text(plans(asked("dmesg", "proc=/proc/stat", "ftrace=schedule", "perf-stat=cycles")))
    assert text.splitlines() == [
        *("monitor dmesg", "log", "monitor proc", "file /proc/stat", "monitor perf-stat"),
        *(f"word {w}" for w in _STAT_COMMAND.split(" ")),
        *("monitor ftrace", "trace schedule"),
    ]
    assert deadline_seconds(10.0, Monitor("perf-stat", (), runs=3)) > 30.0


def kept(folder: Path, name: str, files: dict[str, str], seconds: float = 1.0) -> Summary:
    folder.mkdir()
    for file, text in files.items():
        (folder / file).write_text(text)
    return summarise(name, folder, seconds)


STAT = """\
{"counter-value" : "191.540000", "unit" : "msec", "event" : "task-clock", "variance" : 0.59, \
"event-runtime" : 1, "pcnt-running" : 100.00, "metric-value" : 0.5, "metric-unit" : "CPUs utilized"}
{"counter-value" : "<not supported>", "unit" : "", "event" : "cycles", "variance" : 0.00, \
"event-runtime" : 0, "pcnt-running" : 0.00, "metric-value" : 0.0, "metric-unit" : ""}
"""


def test_a_counter_that_is_not_supported_is_absent_and_never_zero(tmp_path: Path) -> None:
    seen, absent = kept(tmp_path / "a", "perf-stat", {"stat.json": STAT})
    assert seen == (MonitorValue("task-clock", 191.54, "ms", 0.0059),)
    assert absent == ("cycles: not supported",)
    seen, absent = kept(tmp_path / "b", "perf-stat", {"stat.json": STAT.splitlines()[1]})
    assert (seen, absent) == ((), ("cycles: not supported",))


def test_half_a_file_of_perf_is_said_to_be_unreadable(tmp_path: Path) -> None:
    seen, absent = kept(tmp_path / "a", "perf-stat", {"stat.json": STAT[:60]})
    assert seen == ()
    assert "cannot be read" in absent[0]


def test_what_the_agent_says_is_absent_is_said(tmp_path: Path) -> None:
    seen, absent = kept(tmp_path / "a", "perf-stat", {"absent": "perf: it is not installed here\n"})
    assert (seen, absent) == ((), ("perf: it is not installed here",))
    assert kept(tmp_path / "b", "perf-stat", {}) == ((), ("it left no stat.json",))


FUNCTIONS = """\
  Function                               Hit    Time            Avg             s^2
  --------                               ---    ----            ---             ---
  scheduler_tick                         250    5000.0 us       20.000 us       1.0 us
  update_curr                           1000    1000.0 us       1.000 us        0.1 us
"""


def test_function_counts_of_all_cpus_are_added_and_shared(tmp_path: Path) -> None:
    seen, absent = kept(
        tmp_path / "a", "ftrace", {"function0": FUNCTIONS, "function1": FUNCTIONS}, seconds=0.5
    )
    assert absent == ()
    assert seen[:3] == (
        MonitorValue("scheduler_tick", 500, "calls"),
        MonitorValue("scheduler_tick, time", 10000.0, "us"),
        MonitorValue("scheduler_tick, share", 1.0, "%"),  # 10 ms of two CPUs' half second
    )
    only = "  Function    Hit\n  --------    ---\n  schedule     7\n"
    seen, absent = kept(tmp_path / "b", "ftrace", {"function0": only})
    assert seen == (MonitorValue("schedule", 7, "calls"),)
    assert "CONFIG_FUNCTION_GRAPH_TRACER" in absent[0]


def test_samples_become_shares_of_symbols(tmp_path: Path) -> None:
    one = "toy  42     250000 cpu-clock:\n\tffffffff81000000 {} ([kernel.kallsyms])\n\t55d0 main (toy)\n\n"
    script = one.format("schedule") * 3 + one.format("pipe_read")
    seen, _ = kept(tmp_path / "a", "perf-record", {"perf.script": script})
    assert seen == (
        *(
            MonitorValue("samples of cpu-clock", 4),
            MonitorValue("schedule", 75.0, "%"),
            MonitorValue("pipe_read", 25.0, "%"),
        ),
    )
    assert kept(tmp_path / "b", "perf-record", {"perf.script": "\n"}) == ((), ("no sample was taken",))


def test_only_new_lines_of_the_log_count(tmp_path: Path) -> None:
    before, new = "[1.0] boot\n[2.0] ready\n", "[3.0] WARNING: CPU: 0 PID: 1\n[3.1] more\n"
    lost = before.splitlines(keepends=True)[1]  # the ring buffer is full
    for number, after in enumerate((before + new, lost + new)):
        seen, _ = kept(tmp_path / str(number), "dmesg", {"dmesg.before": before, "dmesg.after": after})
        assert [one.value for one in seen] == [2, 1]


@pytest.mark.parametrize(
    ("path", "before", "after", "moved"),
    [
        ("/proc/vmstat", "pgfault 10\nnr_free 5\n", "pgfault 25\nnr_free 5\n", {"vmstat pgfault": 15}),
        ("/proc/meminfo", "MemFree:  900 kB\n", "MemFree:  850 kB\n", {"meminfo MemFree": -50}),
        (
            "/proc/stat",
            "cpu  1 0 2 10\nintr 100 7 0\nctxt 5\n",
            "cpu  4 0 2 12\nintr 130 8 29\nctxt 9\n",
            {"stat cpu user": 3, "stat cpu idle": 2, "stat intr": 30, "stat ctxt": 4},
        ),
        (
            "/proc/interrupts",
            "  CPU0 CPU1\n 24: 1 2 IO-APIC 24-edge virtio0\nLOC: 5 5 Local timer interrupts\n",
            "  CPU0 CPU1\n 24: 1 4 IO-APIC 24-edge virtio0\nLOC: 9 6 Local timer interrupts\n",
            {"interrupts 24 (IO-APIC 24-edge virtio0)": 2, "interrupts LOC (Local timer interrupts)": 5},
        ),
        (
            "/proc/diskstats",
            " 254 0 vda 1 0 8 1 0 0 0 0 0 1 1\n",
            " 254 0 vda 3 0 24 1 0 0 0 0 0 1 1\n",
            {"diskstats vda reads": 2, "diskstats vda sectors read": 16},
        ),
        (
            "/sys/fs/cgroup/cpu.stat",
            "usage_usec 5\n",
            "usage_usec 9\nnr_throttled 2\n",
            {
                "cpu.stat usage_usec": 4,
                "cpu.stat nr_throttled": 2,
            },
        ),
    ],
)
def test_counters_of_files(path: str, before: str, after: str, moved: dict[str, int]) -> None:
    assert {seen.name: seen.value for seen in changes(path, before, after)} == moved


def piece(name: str, data: bytes, *, cut: int = 0) -> dict[str, object]:
    return {"file": name, "data": base64.b64encode(data).decode(), "cut": cut}


def test_files_come_in_pieces_and_an_ordinary_answer_in_between_is_not_waited_for(tmp_path: Path) -> None:
    taken = MonitorOutput(tmp_path / "proc", "proc")
    answers: Sequence[dict[str, object]] = [
        {"code": 0, "seconds": 1.0},  # the run that lasted when the monitor was asked for
        piece("proc:vmstat.before", b"pgfault 1\n"),
        piece("proc:vmstat.after", b"pgfault "),
        piece("proc:vmstat.after", b"5\n"),
    ]
    assert [taken.take(answer) for answer in answers] == [False] * 4
    last = {"monitor": "proc", "code": 0, "seconds": 1.0, "out": "", "err": ""}
    assert taken.take(last)
    found = taken.observed(last, 2.0)
    assert found.seen == (MonitorValue("vmstat pgfault", 4),)
    assert found.absent == ()
    assert (Path(found.folder) / "summary.json").is_file()


def test_a_run_that_fails_beside_a_monitor_is_told_and_no_error(tmp_path: Path) -> None:
    taken = MonitorOutput(tmp_path / "dmesg", "dmesg")
    taken.take(piece("big", b"x", cut=1))
    err = base64.b64encode(b"toy: it broke\n").decode()
    found = taken.observed({"monitor": "dmesg", "code": 3, "seconds": 1.0, "out": "", "err": err}, 1.0)
    assert found.absent[0] == "the run beside it ended with code 3 (toy: it broke)"
    assert "big: only its beginning was kept, it is too large" in found.absent


@pytest.mark.parametrize("name", ["../escape", ".hidden", "a/b", ""])
def test_no_file_leaves_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(InfrastructureError):
        MonitorOutput(tmp_path / "proc", "proc").take(piece(name, b"x"))
    assert list(tmp_path.rglob("*")) == [tmp_path / "proc"]
