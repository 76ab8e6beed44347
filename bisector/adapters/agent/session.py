"""One live boot with the workload on it: run after run through the measuring agent.

`deploy` makes a session once a boot answers. A testbed supplies how to see a crash and how to
end the boot.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import logging
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bisector.adapters.agent import monitor_output
from bisector.adapters.agent.cpu_deadline import CpuDeadline, CpuTime
from bisector.adapters.agent.result_files import FetchResults
from bisector.adapters.parsers.run_files import values as values_of
from bisector.adapters.parsers.workload_output import OutputError, parse
from bisector.adapters.system.channel import Line, LineClosed, LineSilent
from bisector.adapters.system.files import write_file
from bisector.errors import BootFailed, InfrastructureError, PerfbisectError, TestbedLost, WorkloadFailed
from bisector.model.records import MonitorResult
from bisector.ports import BootFacts, Job, Monitor, RunResult

log = logging.getLogger(__name__)

CrashReport = Callable[[], str | None]
"""Says how the kernel died, with the end of its console, or None while it lives."""

_SLICE_SECONDS = 0.25
"""Between two looks at the console while a run lasts: a look is one read of a file on this host."""

_CONSOLE_SECONDS = 3.0
"""A connection can die before the panic's last words reach the console: so long is waited for them."""

_ANSWER_SECONDS = 20.0
"""For what the agent does at once (greet, end a run); an emulated guest on a busy host takes seconds."""

_CLOCK_TOLERANCE = 0.02
"""Relative disagreement of two clocks that is flagged: crystals differ by 1e-4, broken clocks by more."""

_CLOCK_SLACK_SECONDS = 0.5
"""Host time of a run that is not the workload's: two SSH messages on a busy host."""

_LACKING = re.compile(r"^perfbisect-runner: (?P<what>.+)\s*\Z", re.MULTILINE)
"""The runner's last word where the testbed or the kernel lacks what the workload requires."""

_FLAGS: Mapping[str, re.Pattern[str]] = {
    "warn": re.compile(r"WARNING: |BUG: |\bOops\b|cut here"),
    "stall": re.compile(r"stall(s|ed)? |soft lockup|hard LOCKUP|blocked for more than"),
    "oom": re.compile(r"Out of memory|oom-kill|invoked oom-killer"),
}
"""What the kernel says, and how the run is flagged for it."""


@dataclass(slots=True)
class AgentSession:
    """A session over any line to an agent that has greeted. See `ports.Session`.

    crashed: see `CrashReport`. on_leave: ends the boot; called once. ticks_per_second: rate of the time stamp
    counter where it is a clock that the kernel cannot change (emulation with -icount: 1e9), else None.
    wall: host time and guest time must agree (hardware, KVM); not so under emulation. cpu_time: see
    `CpuTime`. bring: for jobs that leave files; see `FetchResults`.
    """

    facts: BootFacts
    job: Job
    line: Line
    folder: Path
    crashed: CrashReport
    on_leave: Callable[[], None]
    ticks_per_second: float | None = None
    wall: bool = True
    cpu_time: CpuTime = lambda: None
    bring: FetchResults | None = None
    _broken: PerfbisectError | None = None
    _rested: bool = False
    _left: bool = False

    def run(self, index: int) -> RunResult:
        """Execute the workload once and keep its raw output as `run-<index>.*` in the folder.

        Raises WorkloadFailed (error, timeout, no or no finite metric), BootFailed (the kernel died) or
        TestbedLost (the machine did). After the last two the session refuses further runs with that cause.
        """
        with self._alive():
            answer, seconds = self._ask("run", self.job.timeout, lambda _: True)
            home = self._bring(index)
        return self._result(index, answer, seconds, home)

    def run_monitor(self, monitor: Monitor) -> MonitorResult:
        """Make the runs of a monitor; its files go to `monitors/NAME` in the folder. See `ports.Session`."""
        kept = monitor_output.MonitorOutput(self.folder / "monitors" / monitor.name, monitor.name)
        timeout = monitor_output.deadline_seconds(self.job.timeout, monitor)
        with self._alive():
            answer, seconds = self._ask(f"monitor {monitor.name}", timeout, kept.take)
        return kept.observed(answer, seconds)

    def _ask(
        self, command: str, timeout: float, last: Callable[[Mapping[str, Any]], bool]
    ) -> tuple[Mapping[str, Any], float]:
        """Rest, let the agent do something, and return its answer and the seconds it took.

        last: told each answer, says whether it is the one.
        """
        self._rest()
        started = time.monotonic()
        self.line.send(command)
        answer = self._await(timeout, last)
        return answer, time.monotonic() - started

    @contextlib.contextmanager
    def _alive(self) -> Iterator[None]:
        """Raise BootFailed or TestbedLost where the machine dies, and from then on only that."""
        if self._broken is not None:
            raise self._broken
        try:
            yield
        except LineClosed as error:
            self._broken = self._cause_of_death(error)
            raise self._broken from error
        except BootFailed as error:
            self._broken = error
            raise

    def leave(self) -> None:
        """End the boot. Never raises, and does nothing the second time."""
        if self._left:
            return
        self._left = True
        with contextlib.suppress(InfrastructureError):
            if self._broken is None:
                self.line.send("quit")
        self.line.close()
        try:
            self.on_leave()
        except Exception as error:
            log.warning("could not end the boot cleanly: %s", error)

    def _rest(self) -> None:
        """Settle before the first run, pause before each other; in the testbed's own time."""
        seconds = self.job.pause if self._rested else self.job.settle
        self._rested = True
        if seconds > 0:
            self.line.send(f"pause {round(seconds * 1000)}")
            self._await(seconds + _ANSWER_SECONDS, lambda _: True)

    def _await(self, timeout: float, last: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
        """Wait for the agent's answer, watching for a crash; at the deadline end the run."""
        deadline = CpuDeadline(timeout, self.cpu_time)
        while not deadline.expired():
            try:
                answer = _decoded(self.line.receive(min(_SLICE_SECONDS, timeout)))
            except LineSilent:
                death = self.crashed()
                if death is not None:
                    raise BootFailed("the kernel died while the workload ran", details=death) from None
            else:
                if last(answer):
                    return answer
        self.line.send("kill")
        try:
            while not last(answer := _decoded(self.line.receive(_ANSWER_SECONDS))):
                pass
        except LineSilent:
            raise BootFailed(
                f"the kernel hangs: no end of the workload within {timeout:.0f} s, no answer since",
                details=self.crashed() or "",
            ) from None
        return {**answer, "overdue": timeout}

    def _bring(self, index: int) -> Path | None:
        """Return where the files that a run left are now, or None if it left none."""
        if not self.job.results or self.bring is None:
            return None
        home = self.folder / f"run-{index:03d}.results"
        shutil.rmtree(home, ignore_errors=True)  # of a run with this number that was interrupted
        return home / self.job.results if self.bring(self.job.results, home) else None

    def _cause_of_death(self, error: LineClosed) -> PerfbisectError:
        deadline = time.monotonic() + _CONSOLE_SECONDS
        while True:
            death = self.crashed()
            if death is not None:
                return BootFailed("the kernel died while the workload ran", details=death)
            if time.monotonic() > deadline:
                return TestbedLost("the testbed was lost during a run", details=f"{error}\n{error.details}")
            time.sleep(_SLICE_SECONDS)

    def _result(self, index: int, answer: Mapping[str, Any], seconds: float, home: Path | None) -> RunResult:
        raw = self.folder / f"run-{index:03d}.out"
        out = _output(raw, answer.get("out", ""))
        err = _output(raw.with_suffix(".err"), answer.get("err", ""))
        about = {key: value for key, value in answer.items() if key not in ("out", "err")}
        write_file(raw.with_suffix(".json"), json.dumps({**about, "host_seconds": seconds}).encode())
        _check_ended_well(self.job, answer, out, err)
        try:
            if self.job.results and home is None:
                raise OutputError(f"the run left no '{self.job.results}'")
            if self.job.parse == "results" and home is not None:
                values = values_of(home, self.job.metrics)
            else:
                values = parse(self.job.parse, out, self.job.metrics)
        except OutputError as error:
            raise WorkloadFailed(
                f"the workload '{self.job.name}': {error}", details=f"it printed:\n{_tail(out)}{_tail(err)}"
            ) from error
        guest_seconds = float(answer["seconds"])
        return RunResult(values, seconds, guest_seconds, raw, self._flags(answer, seconds, guest_seconds))

    def _flags(self, answer: Mapping[str, Any], seconds: float, guest_seconds: float) -> tuple[str, ...]:
        said = "\n".join(str(line) for line in answer.get("kernel", ()))
        flags = [flag for flag, pattern in _FLAGS.items() if pattern.search(said)]
        if int(answer.get("tainted", 0)) != int(self.facts.facts.get("tainted") or 0):
            flags.append("taint")
        if self.ticks_per_second and answer.get("ticks"):
            free = answer["ticks"] / self.ticks_per_second
            agree = abs(free - guest_seconds) <= _CLOCK_TOLERANCE * free
        elif self.wall:
            agree = abs(seconds - guest_seconds) <= _CLOCK_TOLERANCE * seconds + _CLOCK_SLACK_SECONDS
        else:
            agree = True
        return (*flags, *(() if agree else ("clock",)))


def await_greeting(line: Line) -> None:
    """Wait for the agent's first line. Raises InfrastructureError if something else comes."""
    hello = _decoded(line.receive(_ANSWER_SECONDS))
    if hello.get("protocol") != 1:
        raise InfrastructureError("the measuring agent speaks another protocol", details=str(hello))


def _decoded(text: str) -> Mapping[str, Any]:
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise InfrastructureError("the measuring agent's answer is garbled", details=text[:500])
    return answer


def _check_ended_well(job: Job, answer: Mapping[str, Any], out: str, err: str) -> None:
    said = f"{_tail(err)}{_tail(out)}"
    name = f"the workload '{job.name}'"
    if "error" in answer:
        raise WorkloadFailed(f"{name} cannot be started: {answer['error']}: {answer.get('reason')}")
    if "overdue" in answer:
        raise WorkloadFailed(f"{name} did not end within {answer['overdue']:.0f} s", details=said)
    if answer.get("signal"):
        raise WorkloadFailed(f"{name} was ended by signal {answer['signal']}", details=said)
    lacking = _LACKING.search(err)
    if answer.get("code") != 0 and lacking is not None:
        raise WorkloadFailed(f"{name} cannot run here: {lacking['what']}", details=said)
    if answer.get("code") != 0:
        raise WorkloadFailed(f"{name} ended with code {answer.get('code')}", details=said)


def _output(path: Path, encoded: str) -> str:
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, TypeError) as error:
        raise InfrastructureError("the measuring agent's answer is garbled", details=str(error)) from error
    write_file(path, data)
    return data.decode(errors="replace")


def _tail(text: str) -> str:
    return text if len(text) <= 2000 else "...\n" + text[-2000:]
