"""Output of a monitored run: pieces of files, then the run's answer; stored and summed up."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

from bisector.adapters.agent.answers import Answer, FilePiece, Finished, StartError, unexpected
from bisector.adapters.agent.monitors import summarise
from bisector.adapters.agent.run_outcome import Outcome
from bisector.adapters.system.files import os_errors_reported
from bisector.errors import TestbedLost
from bisector.model.facts import MonitorResult
from bisector.ports import Monitor

SUMMARY = "summary.json"
"""The `MonitorResult`, beside the raw files."""

_OUT, _ERR = "run.out", "run.err"
_OWN_FILES = frozenset({SUMMARY, _OUT, _ERR})
"""Written here beside the files that are sent, so none of those may have such a name."""

_MAX_SLOWDOWN = 5.0
"""A run beside a monitor may take so many times as long: profiling every function costs a factor of two to
four in an emulated guest."""

_EXTRA_SECONDS = 60.0
"""Extra time for what comes after a run: perf resolves its symbols, the files are sent."""

_MAX_BYTES = 1 << 30
"""Total size of the files of one monitor. The agent sends 64 MiB of a file at most, and a monitor has few
large ones: a recording, its samples as text, and the symbols."""

_MAX_FILES = 1000
"""Files of one monitor: those of ftrace are one a CPU, those of a manifest some dozen."""

_CANNOT_START = 127
"""The agent's exit code for a monitor's program that is not installed; its file 'absent' says so."""

_SHOWN_CHARACTERS = 200
"""Characters quoted of the last line on standard error, beside the exit code."""


def deadline_seconds(timeout: float, monitor: Monitor) -> float:
    """Return the deadline of a monitor's runs in seconds. timeout: of one ordinary run."""
    return timeout * monitor.runs * _MAX_SLOWDOWN + _EXTRA_SECONDS


class MonitorOutput:
    """Takes the agent's answers of one monitored run. folder: made anew, for its files."""

    def __init__(self, folder: Path, monitor: str) -> None:
        """Raises InfrastructureError if the folder cannot be made."""
        self._folder, self._monitor = folder, monitor
        self._files: dict[str, bool] = {}  # name -> whether it was cut
        self._bytes = 0
        with os_errors_reported(f"cannot make {folder}"):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)

    def take(self, answer: Answer) -> bool:
        """Store a piece of a file; return whether this is the answer of the run itself.

        An answer to an ordinary run is a protocol error here.
        Raises AnswerError for what does not belong here, TestbedLost for too much of it.
        """
        if isinstance(answer, Finished):
            return answer.monitor == self._monitor
        if isinstance(answer, StartError):
            return True
        if not isinstance(answer, FilePiece) or answer.file in _OWN_FILES:
            raise unexpected(answer)
        self._bytes += len(answer.data)
        if self._bytes > _MAX_BYTES:
            raise TestbedLost(f"the monitor {self._monitor} sent more than {_MAX_BYTES >> 20} MiB")
        self._files[answer.file] = bool(answer.cut)
        if len(self._files) > _MAX_FILES:
            raise TestbedLost(f"the monitor {self._monitor} sent more than {_MAX_FILES} files")
        self._append(answer.file, answer.data)
        return False

    def summarise(self, outcome: Outcome) -> MonitorResult:
        """Return what the files say, and keep it beside them. Raises InfrastructureError."""
        answer = outcome.answer
        seconds = 0.0
        if isinstance(answer, Finished):
            seconds = answer.seconds
            self._append(_OUT, answer.out)
            self._append(_ERR, answer.err)
        cut = [
            f"{name}: only its beginning was kept, it is too large"
            for name, is_cut in self._files.items()
            if is_cut
        ]
        seen, absent = summarise(self._monitor, self._folder, seconds)
        found = MonitorResult(
            self._monitor,
            str(self._folder),
            seen,
            tuple(dict.fromkeys((*_failures(outcome), *absent, *cut))),
            outcome.host_seconds,
        )
        self._append(SUMMARY, json.dumps(asdict(found), indent=1).encode())
        return found

    def _append(self, name: str, data: bytes) -> None:
        path = self._folder / name
        with os_errors_reported(f"cannot keep {path}"), path.open("ab") as file:
            file.write(data)


def _failures(outcome: Outcome) -> list[str]:
    """Return why a run beside a monitor did not end well, if so: never an error of the kernel under test."""
    failure = outcome.failure()
    if failure is None or failure == f"ended with code {_CANNOT_START}":
        return []
    last = outcome.err.strip().splitlines()[-1:]
    return [f"the run beside it {failure}" + "".join(f" ({line[:_SHOWN_CHARACTERS]})" for line in last)]
