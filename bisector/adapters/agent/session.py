"""One live boot with the workload on it: run after run through the measuring agent.

`deploy` makes a session once a boot answers. A testbed supplies how to see a crash and how to end the boot.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bisector.adapters.agent import monitor_output
from bisector.adapters.agent.answers import (
    Answer,
    AnswerError,
    Finished,
    Paused,
    StartError,
    Symbols,
    parse_answer,
    parse_greeting,
    unexpected,
)
from bisector.adapters.agent.cleanup_end import await_cleanup
from bisector.adapters.agent.cpu_deadline import CpuDeadline, CpuTime
from bisector.adapters.agent.result_files import FetchResults
from bisector.adapters.agent.run_outcome import Outcome, flags, read_values, write_output
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.channel import Line, LineClosed, LineFlood, LineSilent
from bisector.errors import BootFailed, InfrastructureError, PerfbisectError, TestbedLost
from bisector.model.facts import MonitorResult
from bisector.model.printable import printable
from bisector.ports import BootFacts, Job, Monitor, RunResult

log = logging.getLogger(__name__)

CrashReport = Callable[[], str | None]
"""Says how the kernel died, with the end of its console, or None while it lives."""

_CONSOLE_POLL_SECONDS = 0.25
"""Polling interval of the console during a run; each poll reads one file of this host."""

_CONSOLE_DELAY_SECONDS = 3.0
"""A connection can die before the whole panic reaches the console. Wait this long for the rest of the
message."""

_ANSWER_SECONDS = 20.0
"""Timeout of what the agent does at once (greet, end a run); an emulated guest on a busy host takes
seconds."""

_KILLED_SECONDS = 120.0
"""Timeout of all answers after a run was killed; a monitor's files of 64 MiB each come before the last."""


@dataclass(slots=True)
class AgentSession:
    """A session over any line to an agent that has greeted. See `ports.Session`.

    crashed: see `CrashReport`. on_leave: ends the boot; called once. ticks_per_second: rate of the time stamp
    counter where it is a clock that the kernel cannot change (emulation with -icount: 1e9), else None.
    wall: host time and guest time must agree (hardware, KVM); not so under emulation. cpu_time: see
    `CpuTime`. fetch: for jobs that leave files; see `FetchResults`. new_messages: returns the console's
    lines since its last call, for kernels whose log the agent cannot read. unasked: the agent runs by itself,
    so an answer may wait for the next command. paused: returns that a guest stands still by another's doing
    than its kernel's, None while it runs. lives_on: the machine goes on behind the boot, so the end of the
    workload's cleanup is waited for, and a failure told.
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
    fetch: FetchResults | None = None
    new_messages: Callable[[], Sequence[str]] = tuple
    unasked: bool = False
    paused: Callable[[], TestbedLost | None] = lambda: None
    lives_on: bool = False
    _broken: PerfbisectError | None = field(init=False, default=None)
    _settled: bool = field(init=False, default=False)
    _left: bool = field(init=False, default=False)

    def run(self, index: int) -> RunResult:
        """Execute the workload once and keep its raw output as `run-<index>.*` in the folder.

        Raises WorkloadFailed (error, timeout, no or no finite metric), BootFailed (the kernel died) or
        TestbedLost (the machine did). After the last two the session refuses further runs with that cause.
        """
        with self._broken_by_death():
            outcome = self._execute("run", self.job.timeout, _is_end_of_run)
            results = self._fetch_results(index)
        raw = self.folder / f"run-{index:03d}.out"
        write_output(outcome, raw)
        values = read_values(self.job, outcome, results)
        answer = outcome.answer
        assert isinstance(answer, Finished), "read_values raises for any other"
        found = flags(
            answer,
            outcome.host_seconds,
            taint_at_boot=int(self.facts.facts.get("tainted") or 0),
            ticks_per_second=self.ticks_per_second,
            wall_clock=self.wall,
        )
        return RunResult(values, outcome.host_seconds, answer.seconds, raw, found, answer.run)

    def run_monitor(self, monitor: Monitor) -> MonitorResult:
        """Make the runs of a monitor; its files go to `monitors/NAME` in the folder. See `ports.Session`."""
        output = monitor_output.MonitorOutput(self.folder / "monitors" / monitor.name, monitor.name)
        timeout = monitor_output.deadline_seconds(self.job.timeout, monitor)
        with self._broken_by_death():
            outcome = self._execute(f"monitor {monitor.name}", timeout, output.take)
        return output.summarise(outcome)

    def module_symbols(self) -> str:
        """Return the lines of /proc/kallsyms that name code of modules; '' where the agent cannot be asked.

        Raises as `run`.
        """
        if self.unasked:
            return ""
        with self._broken_by_death():
            self._send("symbols")
            answer, _ = self._wait_for(_ANSWER_SECONDS, _is_symbols)
        # An agent of an earlier version, which a bisection began with, knows no such command.
        return answer.symbols.decode("ascii", "replace") if isinstance(answer, Symbols) else ""

    def leave(self) -> None:
        """End the boot. Never raises, and does nothing the second time."""
        if self._left:
            return
        self._left = True
        with contextlib.suppress(InfrastructureError):
            if self._broken is None:
                self.line.send("quit")
                if self.lives_on and self.job.cleanup:
                    await_cleanup(self.line, self.job)
        self.line.close()
        try:
            self.on_leave()
        except Exception as error:
            log.warning("could not end the boot cleanly: %s", error)

    @contextlib.contextmanager
    def _broken_by_death(self) -> Iterator[None]:
        """Raise BootFailed or TestbedLost where the kernel or the machine dies.

        Raises the same error on every later call.
        """
        if self._broken is not None:
            raise self._broken
        try:
            yield
        except (LineClosed, AnswerError) as error:
            self._broken = self._cause_of_death(error)
            raise self._broken from error
        except (BootFailed, TestbedLost) as error:
            self._broken = error
            raise

    def _cause_of_death(self, error: InfrastructureError) -> PerfbisectError:
        """Wait for the end of the console: the kernel broke the line only if it shows the kernel's death."""
        deadline = awake_seconds() + _CONSOLE_DELAY_SECONDS
        while (death := self.crashed()) is None and awake_seconds() < deadline:
            time.sleep(_CONSOLE_POLL_SECONDS)
        if death is not None:
            return BootFailed("the kernel died while the workload ran", details=death)
        if isinstance(error, AnswerError | LineFlood):
            return TestbedLost(error.message, details=printable(error.details))
        return TestbedLost("the testbed was lost during a run", details=f"{error}\n{error.details}")

    def _execute(self, command: str, timeout: float, is_last: Callable[[Answer], bool]) -> Outcome:
        """Settle before the first run, pause before each other; then let the agent do the command.

        is_last: is given each answer and says whether it is the command's own, a `Finished` or `StartError`;
        raises AnswerError for one that has no business there.
        """
        seconds = self.job.pause if self._settled else self.job.settle
        self._settled = True
        if seconds > 0:
            self._send(f"pause {round(seconds * 1000)}")  # in the testbed's own time
            self._wait_for(seconds + _ANSWER_SECONDS, _is_end_of_pause)
        started = time.monotonic()  # what is measured counts every second
        self._send(command)
        answer, killed = self._wait_for(timeout, is_last)
        if not isinstance(answer, Finished | StartError):
            raise unexpected(answer)
        if isinstance(answer, Finished) and answer.killed and not killed:
            raise AnswerError("the measuring agent killed a run that nobody told it to", details=command)
        return Outcome(answer, time.monotonic() - started, timeout if killed else None)

    def _send(self, command: str) -> None:
        """Send a command. Raises AnswerError if an answer waits already: it would be taken for this one's."""
        if not self.unasked:
            with contextlib.suppress(LineSilent):
                raise unexpected(parse_answer(self.line.receive(0.0)))
        self.line.send(command)

    def _wait_for(self, timeout: float, is_last: Callable[[Answer], bool]) -> tuple[Answer, bool]:
        """Return the answer, and whether the run was killed at its deadline; watch for a crash meanwhile."""
        deadline = CpuDeadline(timeout, self.cpu_time)
        while not deadline.expired():
            try:
                answer = self._receive(min(_CONSOLE_POLL_SECONDS, timeout))
            except LineSilent:
                death = self.crashed()
                if death is not None:
                    raise BootFailed("the kernel died while the workload ran", details=death) from None
            else:
                if is_last(answer):
                    return answer, False
        self.line.send("kill")
        end = awake_seconds() + _KILLED_SECONDS
        try:
            while not is_last(answer := self._receive(_ANSWER_SECONDS)):
                if awake_seconds() > end:
                    raise TestbedLost(f"no end of a killed run among {_KILLED_SECONDS:.0f} s of answers")
        except LineSilent as error:
            death = self.crashed()
            if death is None and (paused := self.paused()) is not None:
                raise paused from None
            if error.details and death is None:
                raise TestbedLost(
                    "the measuring agent stopped in the middle of an answer", details=printable(error.details)
                ) from None
            raise BootFailed(
                f"the kernel hangs: no end of the workload within {timeout:.0f} s, no answer since",
                details=death or "",
            ) from None
        return answer, True

    def _receive(self, timeout: float) -> Answer:
        """Return the next answer; one of a run without kernel messages gets those of the console."""
        answer = parse_answer(self.line.receive(timeout))
        messages = self.new_messages()
        if messages and isinstance(answer, Finished) and not answer.kernel:
            return answer.model_copy(update={"kernel": list(messages)})
        return answer

    def _fetch_results(self, index: int) -> Path | None:
        """Return where the files that a run left are now, or None if it left none."""
        if not self.job.results or self.fetch is None:
            return None
        target = self.folder / f"run-{index:03d}.results"
        shutil.rmtree(target, ignore_errors=True)  # left by an interrupted run with this number
        return target / self.job.results if self.fetch(self.job.results, target) else None


def await_greeting(line: Line) -> None:
    """Wait for the agent's first line. Raises AnswerError if something else comes."""
    parse_greeting(line.receive(_ANSWER_SECONDS))


def _is_end_of_run(answer: Answer) -> bool:
    if isinstance(answer, StartError) or (isinstance(answer, Finished) and not answer.monitor):
        return True
    raise unexpected(answer)


def _is_symbols(answer: Answer) -> bool:
    if isinstance(answer, Symbols | StartError):
        return True
    raise unexpected(answer)


def _is_end_of_pause(answer: Answer) -> bool:
    if isinstance(answer, Paused):
        return True
    raise unexpected(answer)
