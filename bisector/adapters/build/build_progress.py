"""How far a running build is, counted in the compiler's log."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path

from bisector.model.compiling import Compiling
from bisector.ports import Progress

_REPORT_SECONDS = 5.0
"""How often progress is reported while compiling."""

_COMPILED = re.compile(rb"^  (?:CC|AS|HOSTCC) ", re.M)
"""A line of the log for each file that is compiled; compile.sh counts the same when it has ended."""

_LOG_BYTES_MAX = 64 << 20
"""Most bytes of a log that are read: one of all modules with every command in it has some ten MiB."""


class BuildProgress:
    """The play's stop callback; also reports progress.

    folder: the builder's, when its files can be read from here; out: name of the output folder; holder: what
    lies in its lock while this build has it, and no other; usual_files: how many files a build from nothing
    compiles, 0 if that is not known yet.
    """

    def __init__(
        self,
        folder: Path | None,
        out: str,
        holder: str,
        usual_files: int,
        progress: Progress,
        stop: Callable[[], bool] | None,
    ) -> None:
        # Where the two drivers write what the compiler says.
        names = ("tuxmake/build.log", "build.log") if folder else ()
        self._logs = [Path(folder or "", "builder", "work", name) for name in names]
        self._usual_files = usual_files
        # What a build compiles in a folder with objects is known when it has ended.
        self._has_objects = Path(folder or "", "builder", "out", out).exists()
        self._progress = progress
        self._stop = stop
        self._lock, self._holder = Path(folder or "", "builder", "lock.holder"), holder
        self._report_at = time.monotonic() + _REPORT_SECONDS
        self._reported = 0

    def __call__(self) -> bool:
        """Return whether to stop."""
        if self._logs and time.monotonic() >= self._report_at:
            self._report_at = time.monotonic() + _REPORT_SECONDS
            compiled = max(map(_count_compiled, self._logs)) if self._is_ours() else 0
            if compiled > self._reported:
                self._reported = compiled
                self._progress(self._describe(compiled))
        return self._stop is not None and self._stop()

    def _describe(self, compiled: int) -> str:
        usual = self._usual_files
        if not usual:
            return f"compiling: {compiled:,} files so far"
        if self._has_objects or compiled > usual:
            return f"compiling: {compiled:,} files so far (a whole kernel has {usual:,})"
        return Compiling(f"compiling: {compiled:,} of about {usual:,} files", compiled / usual)

    def _is_ours(self) -> bool:
        """Return whether the build that runs in the folder is this one."""
        try:
            return self._lock.read_text(encoding="utf-8", errors="replace") == self._holder
        except OSError:
            return False


def _count_compiled(path: Path) -> int:
    try:  # the build may have put a link or a pipe there
        with open(path, "rb", opener=_open_what_is_there) as file:
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return len(_COMPILED.findall(file.read(_LOG_BYTES_MAX))) if is_file else 0
    except OSError:
        return 0


def _open_what_is_there(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
