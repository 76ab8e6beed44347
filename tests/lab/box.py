"""Processes that end with this one, however it ends: they live in a process namespace of their own.

The first process of the namespace dies with the one that made the box (PR_SET_PDEATHSIG), and the kernel ends
all others with it. Nothing that a machine, a BMC or a daemon starts can stay behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

_FIRST_PROCESS = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); signal.pause()"
"""Ignored, SIGCHLD makes the kernel bury the dead: nobody is left as a zombie."""

_START_SECONDS = 10.0


class Box:
    """Use as a context manager. mounts: also a mount namespace, where mounts are nobody else's."""

    def __init__(self, *, mounts: bool = False) -> None:
        namespaces = ["--pid", *(["--mount", "--propagation=private"] if mounts else [])]
        self._unshare = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig=KILL", "unshare", *namespaces, "--fork", "--kill-child=KILL"),
                *(sys.executable, "-IS", "-c", _FIRST_PROCESS),
            ],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._first = only_child(self._unshare)
        # The beginning of a command that runs in the box, for programs of others too.
        self.enter = ["nsenter", f"--pid=/proc/{self._first}/ns/pid"]
        self.enter += [f"--mount=/proc/{self._first}/ns/mnt"] if mounts else []

    def start(self, command: Sequence[str | Path], log: Path, cwd: Path | None = None) -> Inmate:
        """Start a program that stays; its output goes to `log`."""
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*self.enter, "--", *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=cwd,
            )
        return Inmate(process)

    def run(self, command: Sequence[str | Path], timeout: float = 60.0) -> str:
        """Run a program to its end and return its output. Raises CalledProcessError, TimeoutExpired."""
        return subprocess.run(
            [*self.enter, "--", *map(str, command)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            text=True,
            timeout=timeout,
        ).stdout

    def close(self) -> None:
        """End all processes of the box."""
        with contextlib.suppress(ProcessLookupError):
            self._unshare.kill()
        self._unshare.wait()

    def __enter__(self) -> Box:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Inmate:
    """A program in a box. nsenter waits for it outside, so the program is nsenter's only child."""

    def __init__(self, nsenter: subprocess.Popen[bytes]) -> None:
        self._nsenter = nsenter

    def kill(self) -> None:
        """End it at once, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            self._signal(signal.SIGKILL)
        self._nsenter.wait()

    def is_running(self) -> bool:
        """Return whether it has not ended."""
        return self._nsenter.poll() is None

    def _signal(self, number: int) -> None:
        os.kill(only_child(self._nsenter), number)


def only_child(process: subprocess.Popen[bytes]) -> int:
    """Return the process id of the only child. Raises ChildProcessError if there is none."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        found = children.read_text().split()
        if found:
            return int(found[0])
        time.sleep(0.01)
    raise ChildProcessError(f"process {process.pid} has no child")
