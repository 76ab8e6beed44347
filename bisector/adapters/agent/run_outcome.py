"""The outcome of one run: keep its raw output, check its end, read its values and flags.

Input is the agent's answer, whose form was checked when it was parsed (see `answers`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.agent.answers import Finished, StartError
from bisector.adapters.parsers.run_files import values as values_of_files
from bisector.adapters.parsers.workload_output import OutputError, parse, ratios
from bisector.adapters.system.files import write_file
from bisector.errors import InfrastructureError, WorkloadFailed
from bisector.ports import Job

_CLOCK_TOLERANCE = 0.02
"""Relative disagreement of two clocks that is flagged: crystals differ by 1e-4, broken clocks by more."""

_CLOCK_SLACK_SECONDS = 0.5
"""Host time of a run that is not the workload's: two SSH messages on a busy host."""

_TICK_SECONDS = 0.01
"""A kernel with HZ=100 and no finer clock source says up to one tick more than a run took."""

_SHOWN_CHARACTERS = 2000
"""Characters of each output that an error quotes; the whole is in the folder of the boot."""

_SHOWN_LINES = 30
"""Lines of it: 2,000 characters of short ones would push the message off the screen."""

_START_HINTS: Mapping[str, str] = {
    "Permission denied": "chmod +x makes it a program",
    "Exec format error": "a script begins with '#!/bin/sh'; a program is built for the testbed's processor",
    "No such file or directory": (
        "a script's first line may name a program that is not there, or end in a carriage return"
    ),
}
"""What mostly is wrong with a file of the workload that cannot be started, by the kernel's reason."""

_MISSING_REQUIREMENT = re.compile(r"^perfbisect-runner: (?P<what>.+)\s*\Z", re.MULTILINE)
"""The runner's last line where the testbed or the kernel lacks what the workload requires."""

_FLAGS: Mapping[str, re.Pattern[str]] = {
    "warn": re.compile(
        r"WARNING: |BUG: |\bOops\b|cut here|general protection fault.*\[#|[Uu]nable to handle kernel "
    ),
    "stall": re.compile(r"stall(s|ed)? |soft lockup|hard LOCKUP|blocked for more than"),
    "oom": re.compile(r"Out of memory|cgroup out of memory|oom-kill|invoked oom-killer"),
    "io": re.compile(r"I/O error(,| on) dev(ice)? (?!fd[0-9]|sr[0-9])|EXT[2-4]-fs error \(device"),
    "throttle": re.compile(r"temperature above threshold, cpu clock( is)? throttled"),
    "clock": re.compile(r"Marking clocksource '[^']+' as unstable|Clocksource \S+ unstable"),
}
"""Flag of a run -> the kernel's messages that set it. '[#': a fault of the kernel, not of a program. Drives
without a medium (fd, sr) fail whenever somebody looks at them."""

_TIMEOUT_CURE = (
    "if a run needs longer, say so in the manifest: timeout: SECONDS; else look for what it waits for"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command of the agent ended. host_seconds: until its answer came; missed_deadline: the seconds
    that it was given, where it was killed for taking longer, else None."""

    answer: Finished | StartError
    host_seconds: float
    missed_deadline: float | None = None

    @property
    def out(self) -> str:
        """Return what the workload printed."""
        return self.answer.out.decode(errors="replace") if isinstance(self.answer, Finished) else ""

    @property
    def err(self) -> str:
        """Return what it printed on standard error."""
        return self.answer.err.decode(errors="replace") if isinstance(self.answer, Finished) else ""

    def failure(self) -> str | None:
        """Return how the workload failed, as the end of a sentence about it; None if it ended well."""
        answer = self.answer
        if isinstance(answer, StartError):
            return f"cannot be started: {answer.error}: {answer.reason}"
        if self.missed_deadline is not None:
            return f"did not end within {self.missed_deadline:.0f} s"
        if answer.signal:
            return f"was ended by signal {answer.signal}"
        return f"ended with code {answer.code}" if answer.code != 0 else None


def write_output(outcome: Outcome, path: Path) -> None:
    """Keep a run's raw output: `path` (NAME.out), NAME.err, and the rest of the answer in NAME.json.

    Raises InfrastructureError.
    """
    answer = outcome.answer
    data = (answer.out, answer.err) if isinstance(answer, Finished) else (b"", b"")
    write_file(path, data[0])
    write_file(path.with_suffix(".err"), data[1])
    about = answer.model_dump(exclude={"out", "err", "monitor"}) | {"host_seconds": outcome.host_seconds}
    if outcome.missed_deadline is not None:
        about["overdue"] = outcome.missed_deadline
    write_file(path.with_suffix(".json"), json.dumps(about).encode())


def read_values(job: Job, outcome: Outcome, results: Path | None) -> dict[str, float]:
    """Return the value of every metric that the run gave. results: the files that it left, None if none.

    Raises WorkloadFailed: it did not end well, or a metric is missing, in another unit or not finite.
    """
    name, shown = f"the workload '{job.name}'", _end(outcome.err) + _end(outcome.out)
    failure = outcome.failure()
    if failure is not None:
        missing = _MISSING_REQUIREMENT.search(outcome.err)
        if missing is not None and failure.startswith("ended with code"):
            failure = f"cannot run here: {missing['what']}"
        if isinstance(outcome.answer, StartError):
            shown = _START_HINTS.get(outcome.answer.reason, "")
        cure = "" if outcome.missed_deadline is None else _TIMEOUT_CURE
        raise WorkloadFailed(f"{name} {failure}", details=shown, cure=cure)
    try:
        if job.results and results is None:
            raise OutputError(f"the run left no '{job.results}'")
        if job.parse == "elapsed" and isinstance(outcome.answer, Finished):
            taken = {metric.name: outcome.answer.seconds for metric in job.metrics if metric.ratio is None}
            return taken | ratios(taken, job.metrics)
        if job.parse == "results" and results is not None:
            return values_of_files(results, job.metrics)
        return parse(job.parse, outcome.out, job.metrics)
    except OutputError as error:
        raise WorkloadFailed(f"{name}: {error}{_why(job, outcome)}", details=_printed(outcome)) from error


def flags(
    answer: Finished,
    host_seconds: float,
    *,
    taint_at_boot: int,
    ticks_per_second: float | None,
    wall_clock: bool,
) -> tuple[str, ...]:
    """Return what was wrong with a run that ended well: 'warn', 'stall', 'oom', 'io', 'throttle', 'taint',
    'clock'.

    'taint': the kernel's taint flags differ from those at boot. 'clock': the kernel gave its clock source up,
    or the guest's clock disagrees with its counter of ticks (where `ticks_per_second` is known), else with
    the host's (where both are wall clocks).
    """
    messages = "\n".join(answer.kernel)
    found = [flag for flag, pattern in _FLAGS.items() if pattern.search(messages)]
    if answer.tainted != taint_at_boot:
        found.append("taint")
    if ticks_per_second and answer.ticks:
        reference, slack = answer.ticks / ticks_per_second, 0.0
    elif wall_clock:
        reference, slack = host_seconds, _CLOCK_SLACK_SECONDS
    else:
        return tuple(found)
    late = reference - answer.seconds
    if late < 0:  # an answer reaches a busy host later, never earlier
        slack = min(slack, _TICK_SECONDS)
    if abs(late) > _CLOCK_TOLERANCE * reference + slack and "clock" not in found:
        found.append("clock")
    return tuple(found)


def _why(job: Job, outcome: Outcome) -> str:
    """Return why metrics are not where they are read, '' where nothing shows why."""
    if job.parse in ("elapsed", "results") or not isinstance(outcome.answer, Finished):
        return ""
    if outcome.answer.out_cut:
        return f" (the first {outcome.answer.out_cut:,} bytes of the output are not kept: print less)"
    try:
        parse(job.parse, outcome.err, job.metrics)
    except (OutputError, InfrastructureError):
        return ""
    return "; it is on standard error, which is not read: begin a script with 'exec 2>&1'"


def _printed(outcome: Outcome) -> str:
    """Return the end of both outputs, each under its name."""
    printed = f"it printed:\n{_end(outcome.out)}"
    if outcome.err:
        printed = printed.removesuffix("\n") + f"\non standard error:\n{_end(outcome.err)}"
    return printed


def _end(text: str) -> str:
    lines = text[-_SHOWN_CHARACTERS:].splitlines(keepends=True)
    if len(text) <= _SHOWN_CHARACTERS and len(lines) <= _SHOWN_LINES:
        return text
    return "...\n" + "".join(lines[-_SHOWN_LINES:])
