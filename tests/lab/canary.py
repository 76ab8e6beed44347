"""Looks for passwords where nobody may find them: command lines of processes, files, what was printed."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection
from pathlib import Path
from types import TracebackType

_PAUSE_SECONDS = 0.1
"""A command such as ipmitool lives for 0.2 s and more."""


class CommandLineWatch:
    """Use as a context manager: `found` are the command lines of this host's processes that held a secret."""

    def __init__(self, secrets: Collection[str]) -> None:
        self._secrets = [secret.encode() for secret in secrets]
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.found: set[bytes] = set()
        self.rounds = 0

    def __enter__(self) -> CommandLineWatch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(_PAUSE_SECONDS):
            self.rounds += 1
            # Path.glob would look whether each file exists, and raise where its process has ended by then.
            for process in filter(str.isdigit, os.listdir("/proc")):
                try:
                    line = Path("/proc", process, "cmdline").read_bytes()
                except OSError:
                    continue
                if any(secret in line for secret in self._secrets):
                    self.found.add(line)


def files_with(secrets: Collection[str], folder: Path) -> list[Path]:
    """Return the files below a folder that hold a secret."""
    wanted = [secret.encode() for secret in secrets]
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in files if any(secret in path.read_bytes() for secret in wanted)]
