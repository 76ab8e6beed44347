"""A machine whose answers are scripted, with its console, its power switch and its way to boot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bisector.adapters.machine import boot_watch
from bisector.adapters.machine.machine_parts import ConsoleState, Power, PowerStatus, RunningKernel
from bisector.adapters.machine.machine_reach import Answer, MachineReach
from bisector.adapters.system.ssh import SSHRefused
from bisector.errors import InfrastructureError

if TYPE_CHECKING:
    import pytest

OWN, TESTED = "own 1", "tested 1"
"""Boots by name: of the machine's own kernel, of a kernel under test. '' is silence."""

PANIC = "Kernel panic - not syncing: no init"


class ScriptedConsole:
    """machine_parts.Console of given text."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self.dead = False
        self.closed = 0
        self.boots: list[str] = []
        self.last_words = ""
        self.now: ConsoleState = "off"

    def show(self, path: Path, text: str) -> None:
        path.write_text(text)
        self.path, self.now, self.last_words = path, "heard", text

    def death(self) -> str | None:
        return PANIC if self.dead else None

    def end(self) -> str:
        return self.last_words

    def state(self) -> ConsoleState:
        return self.now

    def reason(self) -> str:
        return ""

    def begin_boot(self) -> None:
        self.boots.append("begin")

    def booted(self) -> None:
        self.boots.append("up")

    def close(self) -> None:
        self.closed += 1


class ScriptedMachine:
    """machine_parts.Power and BootMethod of a machine that answers as told; the last answer goes on.

    runs: the keys of the kernels under test that run when boots are asked for, the last again and again.
    awaits: until this is done to it ('on', 'cycle', 'restart'), its answers do not go on. done: what was
    done. stages: of its power; what the second does is 'cycle 2'.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
        self.answers = list(answers)
        self.console = ScriptedConsole()
        self.done: list[str] = []
        self.awaits = ""
        self.now: PowerStatus | InfrastructureError = "unknown"
        self.switch_fails: InfrastructureError | None = None
        self.stages = 1
        self.own_release = self.noted_release = "6.1.0-own"
        self.mark, self.token = "ours", ""
        self.left: tuple[str, ...] = ()
        self.unwritable: list[str | InfrastructureError] = []
        self.devices: list[str | InfrastructureError] = []
        self.requests_ended: list[bool] = []
        self.end_fails: InfrastructureError | None = None
        self.survivors = ""
        self.facts: Mapping[str, str] = {}
        self.ran, self.runs = "", [""]
        self.watchdog_spare = 0.0
        self.was_left = False
        self.record: str | InfrastructureError = ""
        monkeypatch.setattr(boot_watch, "PAUSE_SECONDS", 0.01)
        monkeypatch.setattr(MachineReach, "ask", lambda _: self.ask())
        monkeypatch.setattr(MachineReach, "probe_seconds", 10.0, raising=False)
        monkeypatch.setattr(MachineReach, "run", lambda _, command, **__: self.run(command))

    def ask(self) -> Answer:
        waits = self.awaits and self.awaits not in self.done
        said = self.answers[0] if waits or len(self.answers) == 1 else self.answers.pop(0)
        if not said:
            raise SSHRefused("no route", details="to the host")
        return Answer(said, "key" if said.startswith("tested") else "")

    def run(self, command: Sequence[str]) -> str:
        script = command[2] if command[0] == "sh" else ""
        if "in-use.new" in script:
            if command[-1] == "renew":
                if not self.answers[0]:
                    raise SSHRefused("no route", details="to the host")
                if command[7] != self.token:
                    return "refused another"
            self.token = command[7]
            return self.mark
        if command[0] == "python3":  # looks at the scratch device
            said = self.devices.pop(0)
            if isinstance(said, InfrastructureError):
                raise said
            return said
        if "probe" in script:
            wrong = self.unwritable.pop(0) if self.unwritable else ""
            if isinstance(wrong, InfrastructureError):
                raise wrong
            if wrong:
                raise InfrastructureError("'sh' failed", details=f"sh\n{wrong}")
            return ""
        if "kill" in script:
            return self.survivors
        self.done.append(command[0])
        return ""

    # --- power

    def on(self) -> None:
        self._switch("on")

    def off(self) -> None:
        self._switch("off")

    def cycle(self) -> None:
        self._switch("cycle")

    def further(self) -> Power | None:
        return _Stage(self, 2) if self.stages > 1 else None

    def _switch(self, what: str) -> None:
        if self.switch_fails is not None:
            raise self.switch_fails
        self.done.append(what)

    def status(self) -> PowerStatus:
        if isinstance(self.now, InfrastructureError):
            raise self.now
        return self.now

    # --- boot

    def must_leave_kernel(self) -> bool:
        return self.was_left

    def request_boot(self, *_: Any) -> str:
        self.done.append("request")
        self.ran = self.runs.pop(0) if len(self.runs) > 1 else self.runs[0]
        return OWN

    def end_request(self, *, up: bool) -> None:
        self.requests_ended.append(up)
        if up and self.end_fails is not None:
            raise self.end_fails

    def crash(self) -> str:
        if isinstance(self.record, Exception):
            raise self.record
        return self.record

    def running(self) -> RunningKernel:
        return RunningKernel("own", self.own_release, "", "", self.left, self.noted_release)

    def restart(self) -> None:
        self.done.append("restart")

    def forget(self) -> None:
        self.done.append("forget")
        self.noted_release = ""


class _Stage:
    """machine_parts.Power of a machine's further stages."""

    def __init__(self, machine: ScriptedMachine, number: int) -> None:
        self._machine, self._number = machine, number

    def on(self) -> None:
        self._machine.done.append(f"on {self._number}")

    def off(self) -> None:
        self._machine.done.append(f"off {self._number}")

    def cycle(self) -> None:
        self._machine.done.append(f"cycle {self._number}")

    def status(self) -> PowerStatus:
        return self._machine.status()

    def further(self) -> Power | None:
        return _Stage(self._machine, self._number + 1) if self._number < self._machine.stages else None


def quiet(_: str) -> None:
    """ports.Progress that nobody reads."""
