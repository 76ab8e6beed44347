"""From the monitors of a manifest to the agent's plan for each; its form is in observe.h of the agent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bisector.adapters.agent.monitors.monitor_files import RECORDING, STAT
from bisector.adapters.parsers.profiles.perf_script import FIELDS, SCRIPT
from bisector.ports import Monitor
from bisector.schemas.workload.monitors import Monitors

COUNTERS = "counters"
"""The monitor that has no runs of its own: emulated guests count in the samples."""

_FOLDER = "perfbisect-observed"
"""OBSERVED in the agent's observe.h."""


def plans(wanted: Monitors) -> tuple[Monitor, ...]:
    """Return the monitors in the order in which they get their runs: the least disturbing first."""
    return tuple(_each(wanted))


def plan_text(monitors: Sequence[Monitor]) -> str:
    """Return the agent's file of all monitors."""
    return "".join(f"monitor {m.name}\n" + "".join(f"{line}\n" for line in m.plan) for m in monitors)


def _each(wanted: Monitors) -> Iterator[Monitor]:
    if wanted.counters is not None:
        yield Monitor(COUNTERS, ())
    if wanted.dmesg is not None:
        yield Monitor("dmesg", ("log",))
    if wanted.proc is not None:
        yield Monitor("proc", tuple(f"file {path}" for path in wanted.proc.files))
    if wanted.perf_stat is not None:
        stat = wanted.perf_stat
        words = ["perf", "stat", "-j", "-r", str(stat.repeat), "-o", f"{_FOLDER}/{STAT}"]
        for event in stat.events:
            words += ["-e", event]
        yield Monitor("perf-stat", _words([*words, "--"]), runs=stat.repeat)
    if wanted.ftrace is not None:
        functions = tuple(f"trace {name}" for name in wanted.ftrace.functions)
        yield Monitor("ftrace", functions or ("trace",))
    if wanted.perf_record is not None:
        recording, frequency = f"{_FOLDER}/{RECORDING}", str(wanted.perf_record.frequency)
        words = ["perf", "record", "-N", "-a", "-g", "-F", frequency, "-o", recording, "--"]
        # Resolved on the testbed: only there are the symbols of the kernel and programs that ran.
        script = f"then {SCRIPT} perf script -f -i {recording} -F {FIELDS}"
        yield Monitor("perf-record", (*_words(words), script, "keep /proc/kallsyms"))


def _words(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"word {word}" for word in words)
