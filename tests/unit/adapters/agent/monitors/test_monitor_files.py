"""What a monitor's files say, and what is said to be absent."""

from __future__ import annotations

from pathlib import Path

from bisector.adapters.agent.monitors import summarise
from bisector.adapters.agent.monitors.monitor_files import Summary
from bisector.model.facts import MonitorValue


def summary_of(folder: Path, name: str, files: dict[str, str], seconds: float = 1.0) -> Summary:
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
    seen, absent = summary_of(tmp_path / "a", "perf-stat", {"stat.json": STAT})
    assert seen == (MonitorValue("task-clock", 191.54, "ms", 0.0059),)
    assert absent == ("cycles: not supported",)
    seen, absent = summary_of(tmp_path / "b", "perf-stat", {"stat.json": STAT.splitlines()[1]})
    assert (seen, absent) == ((), ("cycles: not supported",))


def test_half_a_file_of_perf_is_said_to_be_unreadable(tmp_path: Path) -> None:
    seen, absent = summary_of(tmp_path / "a", "perf-stat", {"stat.json": STAT[:60]})
    assert seen == ()
    assert "cannot be read" in absent[0]


def test_what_the_agent_says_is_absent_is_said(tmp_path: Path) -> None:
    seen, absent = summary_of(tmp_path / "a", "perf-stat", {"absent": "perf: it is not installed here\n"})
    assert (seen, absent) == ((), ("perf: it is not installed here",))
    assert summary_of(tmp_path / "b", "perf-stat", {}) == ((), ("it left no stat.json",))


FUNCTIONS = """\
  Function                               Hit    Time            Avg             s^2
  --------                               ---    ----            ---             ---
  scheduler_tick                         250    5000.0 us       20.000 us       1.0 us
  update_curr                           1000    1000.0 us       1.000 us        0.1 us
"""


def test_function_counts_of_all_cpus_are_added_and_shared(tmp_path: Path) -> None:
    seen, absent = summary_of(
        tmp_path / "a", "ftrace", {"function0": FUNCTIONS, "function1": FUNCTIONS}, seconds=0.5
    )
    assert absent == ()
    assert seen[:3] == (
        MonitorValue("scheduler_tick", 500, "calls"),
        MonitorValue("scheduler_tick, time", 10000.0, "us"),
        MonitorValue("scheduler_tick, share", 1.0, "%"),  # 10 ms of two CPUs' half second
    )
    only = "  Function    Hit\n  --------    ---\n  schedule     7\n"
    seen, absent = summary_of(tmp_path / "b", "ftrace", {"function0": only})
    assert seen == (MonitorValue("schedule", 7, "calls"),)
    assert "CONFIG_FUNCTION_GRAPH_TRACER" in absent[0]


def test_samples_become_shares_of_symbols(tmp_path: Path) -> None:
    one = "toy  42     250000 cpu-clock:\n\tffffffff81000000 {} ([kernel.kallsyms])\n\t55d0 main (toy)\n\n"
    script = one.format("schedule") * 3 + one.format("pipe_read")
    seen, _ = summary_of(tmp_path / "a", "perf-record", {"perf.script": script})
    assert seen == (
        *(
            MonitorValue("samples of cpu-clock", 4),
            MonitorValue("schedule", 75.0, "%"),
            MonitorValue("pipe_read", 25.0, "%"),
        ),
    )
    assert summary_of(tmp_path / "b", "perf-record", {"perf.script": "\n"}) == ((), ("no sample was taken",))


def test_only_new_lines_of_the_log_count(tmp_path: Path) -> None:
    before, new = "[1.0] boot\n[2.0] ready\n", "[3.0] WARNING: CPU: 0 PID: 1\n[3.1] more\n"
    lost = before.splitlines(keepends=True)[1]  # the ring buffer is full
    for number, after in enumerate((before + new, lost + new)):
        seen, _ = summary_of(tmp_path / str(number), "dmesg", {"dmesg.before": before, "dmesg.after": after})
        assert [one.value for one in seen] == [2, 1]


def test_values_and_reasons_without_number_are_cut_and_it_is_said(tmp_path: Path) -> None:
    counters = "".join(f"c{number} {{}}\n" for number in range(20_000)) + "n" * 5000 + " {}\n"
    files = {"x.before": counters.format(*[0] * 20_001), "x.after": counters.format(*[1] * 20_001)}
    seen, absent = summary_of(tmp_path / "a", "proc", files)
    assert len(seen) == 10_000
    assert absent == ("of 20001 values the first 10000 are kept",)
    seen, absent = summary_of(tmp_path / "b", "proc", {"absent": "x" * 9999 + "\ny\n" * 500})
    assert (len(absent), len(absent[0])) == (100, 500)
