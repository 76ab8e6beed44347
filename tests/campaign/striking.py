"""Inside the process of a bisection: moments are counted, and the armed fault strikes at its own.

What has struck is noted in a file before it strikes, so that the next process of the same bisection arms the
next fault. What another process has to do (lock a database, let us run again) is asked for over a pipe.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bisector.adapters.guest import qemu_processes
from tests.campaign.faults import DELAY_SECONDS_MAX, Fault

STRUCK = "struck"
"""File of a bisection: a line for each fault that has struck."""

Strike = Callable[[Fault], object]
"""Does what a class of faults does."""


class Striker:
    """The faults of one bisection. Threads may share it."""

    def __init__(self, faults: Sequence[Fault], folder: Path, strikes: Mapping[str, Strike]) -> None:
        """folder: of the bisection, for the note of what has struck; strikes: by class."""
        self._struck, self._strikes = folder / STRUCK, strikes
        self._left = list(faults[len(lines(self._struck)) :])
        self._lock = threading.Lock()
        self.passed: Counter[str] = Counter()

    def moment(self, name: str) -> None:
        """Say that a moment is passed; the armed fault strikes if it is its own."""
        with self._lock:
            self.passed[name] += 1
            if not self._left or self._left[0].moment != name or self.passed[name] != self._left[0].count:
                return
            fault = self._left.pop(0)
            self.passed.clear()
            with self._struck.open("a") as file:
                file.write(f"{fault}\n")
        self._strikes[fault.kind](fault)


def lines(path: Path) -> list[str]:
    """Return the lines of a file, none if it is not there."""
    return path.read_text().splitlines() if path.exists() else []


class Helper:
    """The end of the pipes to the campaign, which does what this process cannot do to itself."""

    def __init__(self, asking: int, answers: int) -> None:
        self._asking, self._answers = asking, answers

    def tell(self, what: str, **more: object) -> None:
        """Say something that needs no answer."""
        self._say({"what": what, "answer": False, **more})

    def ask(self, what: str, **more: object) -> None:
        """Ask for something and wait until it is done."""
        self._say({"what": what, "answer": True, **more})
        os.read(self._answers, 1)

    def _say(self, wish: Mapping[str, object]) -> None:
        os.write(self._asking, (json.dumps(wish) + "\n").encode())


def kill(fault: Fault) -> None:
    """End this process as kill -9 does."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill_soon(fault: Fault) -> None:
    """End this process a little later, wherever it is then."""
    timer = threading.Timer(fault.choice * DELAY_SECONDS_MAX, kill, (fault,))
    timer.daemon = True
    timer.start()


def terminate(fault: Fault) -> None:
    """Tell this process to end, as Ctrl-C, `kill` or a closed terminal does."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    os.kill(os.getpid(), numbers[int(fault.choice * len(numbers))])


def signal_guests(prefix: str, number: int) -> list[int]:
    """Send a signal to the guests whose names begin so; return their processes."""
    pids = qemu_processes.qemu_pids(prefix)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
    return pids
