"""One case of a campaign: a bisection is run, hurt and resumed until it ends; then everything is checked.

The processes are forked and watched from here. What they cannot do to themselves is done here: their database
is locked, they are continued after SIGSTOP, room is made on their full disk.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import selectors
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.campaign import invariants
from tests.campaign.faults import CLASSES, Case, Fault
from tests.campaign.striking import STRUCK, Helper, lines
from tests.support.small_disk import mounted

_DISK_MEGABYTES = 24
"""Of a disk that will be filled: twice what a bisection takes, so that little has to be written."""

RunProcess = Callable[[Path, int, Sequence[Fault], Sequence[str], Helper], None]
"""Runs one command line in a forked process: folder, variant, faults, arguments, helper."""

ENDED = (0, 2, 4, 5)
"""Exit codes of a bisection that has come to a conclusion."""


@dataclass
class Result:
    """How a case went. faults: as drawn; struck: how many of them struck; codes: of the processes."""

    case: int
    variant: int
    faults: list[str]
    kinds: list[str]
    struck: int = 0
    codes: list[int] = field(default_factory=list)
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)

    def json(self) -> str:
        """Return it as one line."""
        return json.dumps(asdict(self))


@dataclass
class Supervisor:
    """Runs cases. work: folder for theirs; start: arguments of the first process of each bisection.

    truths: of each variant; hang_seconds: a process that takes longer hangs.
    """

    work: Path
    run_process: RunProcess
    start: Sequence[str]
    truths: Sequence[invariants.Truth]
    hang_seconds: float

    def run(self, case: Case, expected: invariants.Ended | None) -> tuple[Result, invariants.Ended | None]:
        """Run a case; expected: how the bisection ends without faults, None where this is that one."""
        folder = self.work / f"case-{case.number}"
        for point in invariants.mounts_below(folder):  # of a campaign that was killed
            subprocess.run(["umount", "--lazy", point], check=False)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        result = Result(
            case.number, case.variant, [str(f) for f in case.faults], [f.kind for f in case.faults]
        )
        started = time.monotonic()
        ended: invariants.Ended | None = None
        try:
            with _disk(folder / "disk", any(f.kind == "disk full" for f in case.faults)):
                (folder / "disk" / "tmp").mkdir()
                self._until_it_ends(case, folder, result)
                result.struck = len(lines(folder / STRUCK))
                ended = invariants.read_end(folder)
                result.violations += invariants.check(
                    folder, self.truths[case.variant], ended, expected, result.struck
                )
        except Exception as error:  # the campaign goes on
            result.violations.append(f"the check itself failed: {type(error).__name__}: {error}")
        finally:
            for process in invariants.processes_of(folder):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        if invariants.mounts_below(folder):
            result.violations.append("a mount is left")
        result.seconds = round(time.monotonic() - started, 2)
        if not result.violations:
            shutil.rmtree(folder, ignore_errors=True)
        return result, ended

    def _until_it_ends(self, case: Case, folder: Path, result: Result) -> None:
        """Start the bisection, resume it after each fault."""
        before = invariants.read_records(folder)
        most = 3 + 3 * len(case.faults)
        while len(result.codes) < most:
            told = len(lines(folder / "out.txt"))
            known = before.id
            code = self._process(case, folder, ["resume", known] if known else list(self.start), result)
            result.codes.append(code)
            (folder / "disk" / "filler").unlink(missing_ok=True)
            now = invariants.read_records(folder)
            result.violations += invariants.nothing_lost(before, now)
            before = now
            said = "\n".join(lines(folder / "out.txt")[told:])
            result.violations += invariants.well_said(code, said)
            if code in ENDED:
                return
            hurt = len(lines(folder / STRUCK))
            if code == -signal.SIGKILL and not any(CLASSES[f.kind].kills for f in case.faults[:hurt]):
                result.violations.append("a process was killed that no fault should kill")
        result.violations.append(f"no end after {most} processes")

    def _process(self, case: Case, folder: Path, arguments: Sequence[str], result: Result) -> int:
        """Run one process to its end and help it meanwhile; return its exit code."""
        asking, answering = os.pipe(), os.pipe()
        helper = Helper(asking[1], answering[0])
        fork = multiprocessing.get_context("fork")
        process = fork.Process(
            target=self.run_process, args=(folder, case.variant, case.faults, arguments, helper)
        )
        process.start()
        os.close(asking[1])
        os.close(answering[0])
        assert process.pid is not None
        helpers = _Helpers(answering[1])
        deadline = time.monotonic() + self.hang_seconds
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(process.sentinel, selectors.EVENT_READ)
                selector.register(asking[0], selectors.EVENT_READ)
                while process.is_alive():
                    for key, _ in selector.select(0.5):
                        if key.fd == asking[0]:
                            data = os.read(asking[0], 1 << 16)
                            if not data:
                                selector.unregister(asking[0])
                            for line in data.decode().splitlines():
                                helpers.help(json.loads(line))
                    if time.monotonic() > deadline:
                        result.violations.append(f"a process hangs: {invariants.stacks(process.pid)}")
                        process.kill()
                        break
            process.join()
        finally:
            helpers.end()
            os.close(asking[0])
            os.close(answering[1])
        assert process.exitcode is not None
        return process.exitcode


class _Helpers:
    """What is done for a process while it runs, each in a thread."""

    def __init__(self, answers: int) -> None:
        self._answers = answers
        self._threads: list[threading.Thread] = []

    def help(self, asked: dict[str, Any]) -> None:
        """Do what was asked for."""
        what, seconds = asked["what"], asked["seconds"]
        actions: dict[object, Callable[[], None]] = {
            "continue": lambda: self._continue(asked["pids"], seconds),
            "lock": lambda: self._lock(asked["file"], seconds, asked["answer"]),
        }
        self._threads.append(threading.Thread(target=actions[what], daemon=True))
        self._threads[-1].start()

    def end(self) -> None:
        """Wait until all is done."""
        for thread in self._threads:
            thread.join()

    def _continue(self, pids: Sequence[int], seconds: float) -> None:
        for pid in pids:
            # A process that waits in vfork (D) stops only after the one that it waits for.
            while _state(pid) not in ("T", "Z", "D", ""):
                time.sleep(0.002)
        time.sleep(seconds)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _lock(self, file: str, seconds: float, answer: bool) -> None:
        """Hold the exclusive lock of a database, as a backup or an administrator's shell does."""
        connection = sqlite3.connect(file, timeout=30, isolation_level=None)
        try:
            connection.execute("begin exclusive")
            if answer:
                os.write(self._answers, b".")
            time.sleep(seconds)
            connection.execute("rollback")
        finally:
            connection.close()


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


@contextlib.contextmanager
def _disk(folder: Path, small: bool) -> Iterator[None]:
    """Make the folder of state and cache, on a small file system of its own where that is to be filled."""
    with contextlib.ExitStack() as stack:
        if small:
            stack.enter_context(mounted(folder, _DISK_MEGABYTES))
        else:
            folder.mkdir()
        yield
