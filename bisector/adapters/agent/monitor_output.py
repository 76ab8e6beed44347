"""What the agent sends of a monitored run: files in pieces, then the run's answer; kept, and summed up."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bisector.adapters.agent.monitors import summarise
from bisector.errors import InfrastructureError
from bisector.model.records import MonitorResult
from bisector.ports import Monitor

SUMMARY = "summary.json"
"""Beside the raw files, what `MonitorResult` says."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]*")
"""Names come from the testbed: nothing that leads out of the folder."""

_SLOWER = 5.0
"""A run beside a monitor may take so many times as long: profiling every function costs a factor of two to
four in an emulated guest."""

_EXTRA_SECONDS = 60.0
"""For what comes after a run: perf resolves its symbols, the files are sent."""

_CANNOT_START = 127
"""The agent's exit code for a program that is not there; the agent has said so itself."""


def deadline_seconds(timeout: float, monitor: Monitor) -> float:
    """Return the deadline of a monitor's runs in seconds. timeout: of one ordinary run."""
    return timeout * monitor.runs * _SLOWER + _EXTRA_SECONDS


class MonitorOutput:
    """Takes the agent's answers of one monitored run. folder: made anew, for its files."""

    def __init__(self, folder: Path, monitor: str) -> None:
        """Raises InfrastructureError if the folder cannot be made."""
        self._folder, self._monitor = folder, monitor
        self._cut: list[str] = []
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        except OSError as error:
            raise InfrastructureError(f"cannot make {folder}: {error.strerror}") from error

    def take(self, answer: Mapping[str, Any]) -> bool:
        """Keep a piece of a file; return whether this is the answer of the run itself.

        What belongs to neither is the end of an ordinary run that nobody waits for any more.
        """
        if "file" not in answer:
            return answer.get("monitor") == self._monitor or "error" in answer
        name = str(answer["file"])
        try:
            data = base64.b64decode(str(answer.get("data", "")), validate=True)
        except binascii.Error as error:
            raise InfrastructureError(
                "the measuring agent's answer is garbled", details=str(error)
            ) from error
        if not _NAME.fullmatch(name):
            raise InfrastructureError("the measuring agent's answer is garbled", details=f"file {name!r}")
        self._write(name, data)
        if answer.get("cut"):
            self._cut.append(f"{name}: only its beginning was kept, it is too large")
        return False

    def observed(self, answer: Mapping[str, Any], seconds: float) -> MonitorResult:
        """Sum up what came. seconds: host time of it all."""
        out, err = (self._text(answer, name) for name in ("out", "err"))
        self._write("run.out", out)
        self._write("run.err", err)
        wrong = _wrong(answer, err.decode(errors="replace"))
        seen, absent = summarise(self._monitor, self._folder, float(answer.get("seconds", 0.0)))
        found = MonitorResult(
            self._monitor,
            str(self._folder),
            seen,
            tuple(dict.fromkeys((*wrong, *absent, *self._cut))),
            seconds,
        )
        self._write(SUMMARY, json.dumps(asdict(found), indent=1).encode())
        return found

    def _text(self, answer: Mapping[str, Any], name: str) -> bytes:
        with contextlib.suppress(binascii.Error):
            return base64.b64decode(str(answer.get(name, "")), validate=True)
        return b""

    def _write(self, name: str, data: bytes) -> None:
        path = self._folder / name
        try:
            with path.open("ab") as file:
                file.write(data)
        except OSError as error:
            raise InfrastructureError(f"cannot keep {path}: {error.strerror}") from error


def _wrong(answer: Mapping[str, Any], err: str) -> list[str]:
    """Return why a run beside a monitor did not end well, if so: never an error of the kernel under test."""
    last = err.strip().splitlines()[-1:] if err.strip() else []
    said = f" ({last[0][:200]})" if last else ""
    if "error" in answer:
        return [f"it cannot be started: {answer['error']}: {answer.get('reason')}"]
    if "overdue" in answer:
        return [f"the run beside it did not end within {answer['overdue']:.0f} s"]
    if answer.get("signal"):
        return [f"the run beside it was ended by signal {answer['signal']}{said}"]
    if answer.get("code") not in (0, _CANNOT_START):
        return [f"the run beside it ended with code {answer.get('code')}{said}"]
    return []
