"""What perf stat prints, once, repeated and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bisector.errors import RequestError
from tests.support.result_samples import boots, only, written

# --- perf stat

REPEATED = """\

 Performance counter stats for 'ls /' (3 runs):

              2.00 msec task-clock                       #    0.132 CPUs utilized            ( +-  6.31% )
   <not supported>      cycles
     1,234,567,890      instructions                     #    1.16  insn per cycle           ( +-  0.58% )

           0.01520 +- 0.00160 seconds time elapsed  ( +- 10.53% )

"""


def test_perf_stat_repeated(tmp_path: Path) -> None:
    found = only(written(tmp_path, REPEATED))
    assert boots(found) == {
        "task-clock": ((2.0,),),
        "instructions": ((1234567890.0,),),
        "elapsed": ((0.0152,),),
    }
    elapsed = found.series["elapsed"]
    assert (elapsed.unit, elapsed.repeats) == ("s", 3)
    assert elapsed.error == pytest.approx(0.1053)
    assert dict(found.missing) == {"cycles": "not supported"}  # stated, never zero


def test_perf_stat_several_times_in_one_file_is_several_runs(tmp_path: Path) -> None:
    text = "\n Performance counter stats for 'x':\n\n  {} cycles  # 1 GHz\n\n  0.5 seconds time elapsed\n"
    found = only(written(tmp_path, text.format(10) + text.format(12)))
    assert boots(found)["cycles"] == ((10.0, 12.0),)
    assert not found.series["cycles"].published


def test_a_unit_is_no_event(tmp_path: Path) -> None:
    """As perf 6.1 wrote it: taken for the event, 'ns' made three runs of one metric out of three clocks."""
    text = (
        "\n Performance counter stats for 'true':\n\n"
        "           1372591 ns   duration_time                    #    1.915 G/sec                  \n"
        "           1480000 ns   user_time                        #    2.065 G/sec                  \n"
        "     <not counted> ns   system_time                                                 \n"
        "              0.72 msec task-clock                       #    0.522 CPUs utilized          \n"
        "             12.50 MB/s read_bandwidth\n"
        "             3,200 Bytes l3_misses.bytes\n"
    )
    found = only(written(tmp_path, text))
    assert {name: (one.boots, one.unit) for name, one in found.series.items()} == {
        "duration_time": (((1372591.0,),), "ns"),
        "user_time": (((1480000.0,),), "ns"),
        "task-clock": (((0.72,),), "ms"),
        "read_bandwidth": (((12.5,),), "MB/s"),
        "l3_misses.bytes": (((3200.0,),), "Bytes"),
    }
    assert dict(found.missing) == {"system_time": "not counted"}


def printed(whose: str, line: str) -> str:
    """Return what perf stat prints with one counter."""
    return f"\n Performance counter stats for {whose}:\n\n{line}\n\n  0.05 seconds time elapsed\n"


@pytest.mark.parametrize(
    "line",
    [
        "           sleep-27942         <not counted> msec task-clock                            ",
        "          python-23622                  9.34 msec task-clock          #    0.731 CPUs utilized   ",
        "  kworker/0:1-mm-31                      230      page-faults         #    1.550 K/sec           ",
    ],
)
def test_counters_of_each_thread_are_not_left_out_in_silence(tmp_path: Path, line: str) -> None:
    """Their names hold the thread's id, which is another one the next time."""
    text = printed("process id '7'", line)
    with pytest.raises(RequestError, match=r":4: threads are counted one by one") as caught:
        only(written(tmp_path, text))
    assert "without --per-thread" in caught.value.cure


@pytest.mark.parametrize(
    "line",
    [
        "CPU0                    80.23 msec cpu-clock                        #    1.180 CPUs utilized",
        "CPU12                     230      page-faults",
        "S0-D0-C0           1              67.96 msec cpu-clock             #    1.344 CPUs utilized",
        "S0        2                230      page-faults                      #    1.550 K/sec  ",
        "N0        2     <not counted>      cycles",
    ],
)
def test_counters_of_each_cpu_are_not_left_out_in_silence(tmp_path: Path, line: str) -> None:
    text = printed("'system wide'", line)
    with pytest.raises(RequestError, match=r":4: parts of the machine are counted one by one") as caught:
        only(written(tmp_path, text))
    assert caught.value.cure == "record with perf stat -j"
    assert boots(only(written(tmp_path, text.replace(line, "S1 of 5 is done\nCPU0 7")))) == {
        "elapsed": ((0.05,),)
    }


def row(event: str, value: str, **more: Any) -> str:
    return json.dumps({"counter-value": value, "unit": "", "event": event, "pcnt-running": 100.0, **more})


def test_perf_stat_json(tmp_path: Path) -> None:
    lines = [
        "started on Sat Nov 21",
        row("cycles", "10.0", variance=1.5),
        row("LLC-misses", "<not counted>"),
        row("faults", "7", **{"pcnt-running": 40.0}),
    ]
    found = only(written(tmp_path, "\n".join(lines)))
    assert boots(found) == {"cycles": ((10.0,),), "faults": ((7.0,),)}
    assert found.series["cycles"].error == 0.015
    assert dict(found.missing) == {"LLC-misses": "not counted"}
    assert "faults was counted 40% of the time" in found.notes[0]


def test_perf_stat_json_of_several_cpus_and_units(tmp_path: Path) -> None:
    lines = [
        row("cycles", "10.0", cpu="0"),
        row("cycles", "12.0", cpu="1"),
        row("cycles", "14.0", socket="S0"),
        row("cycles", "16.0", thread="make-7"),
        row("cycles", "18.0", core="S0-D0-C0"),
        row("cycles", "20.0", core="S0-D0-C1"),
        row("cycles", "22.0", die="S0-D0"),
        row("cycles", "24.0", node="N0"),
        row("cycles", "26.0", cpu="0", cgroup="system.slice"),
        row("task-clock", "1,500.25", unit="msec", variance=-2.0),
        row("duration_time", "7", unit="ns"),
        row("", "", **{"metric-value": 3.0}),
        row("LLC-loads", "<not supported>"),
        row("dTLB-loads", "5"),
        row("dTLB-loads", "<not counted>"),
        row("faults", "7", **{"pcnt-running": 99.5}),
    ]
    found = only(written(tmp_path, "\n".join(lines)))
    assert boots(found) == {
        "cycles/0": ((10.0,),),
        "cycles/1": ((12.0,),),
        "cycles/S0": ((14.0,),),
        "cycles/make-7": ((16.0,),),
        "cycles/S0-D0-C0": ((18.0,),),
        "cycles/S0-D0-C1": ((20.0,),),
        "cycles/S0-D0": ((22.0,),),
        "cycles/N0": ((24.0,),),
        "cycles/0/system.slice": ((26.0,),),
        "task-clock": ((1500.25,),),
        "duration_time": ((7.0,),),
        "dTLB-loads": ((5.0,),),
        "faults": ((7.0,),),
    }
    clock = found.series["task-clock"]
    assert (clock.unit, clock.error, found.series["duration_time"].unit) == ("ms", 0.02, "ns")
    assert dict(found.missing) == {"LLC-loads": "not supported"} and found.notes == ()


def test_an_interval_series_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="interval series of perf stat -I"):
        only(written(tmp_path, row("cycles", "10.0", interval=1.0)))


def test_runs_one_after_the_other_have_no_error_of_their_own(tmp_path: Path) -> None:
    """The error of each mean is of its own repetitions; of two runs neither is the error."""
    found = only(written(tmp_path, REPEATED + REPEATED.replace("0.01520", "0.02520")))
    elapsed = found.series["elapsed"]
    assert (elapsed.boots, elapsed.error, elapsed.repeats) == (((0.0152, 0.0252),), None, 0)
    with pytest.raises(RequestError, match="perf stat counted nothing") as caught:
        only(written(tmp_path, " Performance counter stats for 'x':\n\n  <not counted> cycles\n"))
    assert "cycles: not counted" in caught.value.details


@pytest.mark.parametrize(
    "line",
    [
        "7,234 +- 0,0543 seconds time elapsed  ( +-  7,51% )",
        "7,234 seconds time elapsed",
        "1.234,567 seconds user",
        "12,25 msec task-clock",
        "7,234 msec task-clock",
        "1.234 cycles  ( +-  7,51% )",
        "1.234 cycles  #  0,321 GHz",
    ],
)
def test_decimal_commas_are_refused(tmp_path: Path, line: str) -> None:
    text = f" Performance counter stats for './x 0,5':\n\n  1.234 faults\n\n  {line}\n"
    with pytest.raises(RequestError, match="has a decimal comma") as caught:
        only(written(tmp_path, text))
    assert ":5: " in caught.value.message
    assert "LC_ALL=C" in caught.value.cure


def test_thousands_are_no_decimal_commas(tmp_path: Path) -> None:
    text = (
        " Performance counter stats for './x 0,5' (5 runs):\n\n  1,234.56 msec task-clock\n"
        "  10,234,567 cpu/event=0,umask=0/  # 1,234.5 M/sec\n\n  7.234 +- 0.5 seconds time elapsed\n"
    )
    assert boots(only(written(tmp_path, text))) == {
        "task-clock": ((1234.56,),),
        "cpu/event=0,umask=0/": ((10234567.0,),),
        "elapsed": ((7.234,),),
    }
