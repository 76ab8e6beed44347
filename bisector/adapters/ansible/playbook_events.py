"""Events of ansible-runner as tasks with results, and which of them are errors."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bisector.errors import InfrastructureError
from bisector.model.printable import printable
from bisector.ports import Progress

Status = Literal["ok", "failed", "unreachable", "skipped"]

_EVENTS: Mapping[str, Status] = {
    "runner_on_ok": "ok",
    "runner_on_failed": "failed",
    "runner_on_unreachable": "unreachable",
    "runner_on_skipped": "skipped",
}

_CANCELLED_CODE = 254
"""ansible-runner's exit code for a play that SIGTERM or SIGINT ended (`Runner.run` in its runner.py)."""


_AFTER_SIGNAL_CURE = (
    "look whether another perfbisect or the system did (out of memory: 'dmesg'); "
    "the same command goes on from here"
)

_WORDS_MAX = 300
"""Characters of Ansible's last line that a message repeats; the details have more."""


@dataclass(frozen=True, slots=True)
class Task:
    """One task on one host. `result` is what the module returned (stdout, rc, msg, ansible_facts, ...)."""

    name: str
    host: str
    status: Status
    seconds: float
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Played:
    """A finished playbook. seconds: all of it; log: Ansible's own output as text."""

    playbook: str
    tasks: tuple[Task, ...]
    seconds: float
    log: Path

    @property
    def failed(self) -> Task | None:
        """The first task that failed, if `check` was off and one did."""
        return next((task for task in self.tasks if task.status == "failed"), None)

    def result(self, task: str) -> Mapping[str, Any]:
        """Return what the (last) task of this name returned. Raises InfrastructureError if it never ran."""
        for candidate in reversed(self.tasks):
            if candidate.name == task and candidate.status in ("ok", "failed"):
                return candidate.result
        ran = ", ".join(sorted({t.name for t in self.tasks if t.status != "skipped"}))
        raise InfrastructureError(
            f"the playbook '{self.playbook}' ran no task '{task}'", details=f"it ran: {ran}\nlog: {self.log}"
        )


class Events:
    """Reads ansible-runner's JSON lines; keeps the tasks and the text."""

    def __init__(
        self, playbook: str, log_path: Path, progress: Progress, on_task: Callable[[Task], None] | None
    ) -> None:
        self.playbook = playbook
        self.log = log_path
        self.tasks: list[Task] = []
        self.other_output: list[str] = []
        self._progress = progress
        self._on_task = on_task
        self._file = log_path.open("w", encoding="utf-8")

    def read_line(self, text: str) -> None:
        """Take one line of its output: an event, or other output."""
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict) or "event" not in event:
            if text.strip():
                self.other_output.append(text)
                # lines of a pseudo-terminal end with \r\n
                self._file.write(printable(text.rstrip("\r\n").replace("\r\n", "\n")) + "\n")
            return
        if event.get("stdout"):
            self._file.write(printable(str(event["stdout"])) + "\n")
            self._file.flush()
        data = event.get("event_data") or {}
        if event["event"] == "playbook_on_task_start":
            self._progress(str(data.get("task", "")))
        status = _EVENTS.get(event["event"])
        if status is not None:
            if status == "failed" and data.get("ignore_errors"):
                status = "ok"
            task = Task(
                name=str(data.get("task", "")),
                host=str(data.get("host", "")),
                status=status,
                seconds=float(data.get("duration") or 0.0),
                result=data.get("res") or {},
            )
            self.tasks.append(task)
            if self._on_task is not None:
                self._on_task(task)

    def close(self) -> None:
        """End the log."""
        self._file.close()


def raise_for_failure(played: Played, code: int, events: Events, check: bool) -> None:
    """Raise for what is not a result: no connection, Ansible's own errors, and (with check) a failed task."""
    where = f"log: {played.log}"
    unreachable = next((task for task in played.tasks if task.status == "unreachable"), None)
    if unreachable is not None:
        raise InfrastructureError(
            f"Ansible cannot reach '{unreachable.host}'",
            details=f"{unreachable.result.get('msg', '')}\n{where}",
            cure="run 'perfbisect lab check'",
        )
    failed = played.failed
    if failed is not None:
        if check:
            raise InfrastructureError(
                f"the task '{failed.name}' failed on '{failed.host}': {_reason(failed)}",
                details=f"{explain_failure(failed)}\n{where}",
            )
        return
    if code != 0:
        try:
            text = played.log.read_text(encoding="utf-8", errors="replace")
        except OSError as error:  # someone emptied the cache folder under the playbook
            text = f"it left no log: {error}"
        raise InfrastructureError(
            f"the playbook '{played.playbook}' could not be run: {_explain_exit(code, text)}",
            details=f"{text[-2000:]}\n{where}",
            cure=_AFTER_SIGNAL_CURE if _ended_by_signal(code) else "",
        )
    if not played.tasks:
        raise InfrastructureError(
            f"the playbook '{played.playbook}' had no host to run on",
            details="\n".join(events.other_output[-5:]) + f"\n{where}",
            cure="look at the groups in the lab's inventory: 'perfbisect lab list'",
        )


def _explain_exit(code: int, text: str) -> str:
    """Return Ansible's own reason and its place in the playbook; else what the exit code means.

    text: what Ansible printed, where an error is '[ERROR]: reason' and 'Origin: file:line:column' after it.
    """
    error = re.search(r"^(?:\[ERROR\]:|ERROR!) *(.+)", text, re.MULTILINE)
    if error is not None:
        origin = re.compile(r"^Origin: (.+:\d+):\d+$", re.MULTILINE).search(text, error.end())
        return error[1] + (f" ({origin[1]})" if origin else "")
    if _ended_by_signal(code):
        return "Ansible was told to end by a signal, which another process or the system sent"
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
    return f"{last[:_WORDS_MAX]} (exit code {code})" if last else f"Ansible gave no reason (exit code {code})"


def _ended_by_signal(code: int) -> bool:
    """Return whether a signal ended it: -15 from the system, 128 + 15 from a shell, ansible-runner's code."""
    return code < 0 or code in (
        _CANCELLED_CODE,
        128 + signal.SIGTERM,
        128 + signal.SIGKILL,
        128 + signal.SIGINT,
    )


def _reason(task: Task) -> str:
    """Return in a line why a task failed: the signal that ended its command, else its last line of output."""
    code = task.result.get("rc")
    if isinstance(code, int) and _ended_by_signal(code):
        return "its command was ended by a signal, which another process or the system sent"
    texts = [str(task.result.get(key, "")).strip() for key in ("stderr", "module_stderr", "msg")]
    text = next((text for text in texts if text), "it gave no reason")
    return text.splitlines()[-1].strip()[:_WORDS_MAX]


def explain_failure(task: Task) -> str:
    """Return the words a failed task left, as few as say it: message, standard error, end of the output."""
    parts = [str(task.result.get("msg", ""))]
    parts += [str(task.result.get(key, ""))[-2000:] for key in ("module_stderr", "stderr", "stdout")]
    return "\n".join(part for part in parts if part.strip())
