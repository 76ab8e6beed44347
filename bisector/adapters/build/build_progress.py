"""How far a running build is, counted in the compiler's log."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from bisector.ports import Progress

_REPORT_SECONDS = 5.0
"""How often progress is reported while compiling."""


class BuildProgress:
    """The play's stop callback; also reports progress.

    folder: the builder's, when its files can be read from here; usual_files: how many files a build from
    nothing compiles, 0 if that is not known yet.
    """

    def __init__(
        self, folder: Path | None, usual_files: int, progress: Progress, stop: Callable[[], bool] | None
    ) -> None:
        # Where the two drivers write what the compiler says.
        names = ("tuxmake/build.log", "build.log") if folder else ()
        self._logs = [Path(folder or "", "builder", "work", name) for name in names]
        self._total = f" (a whole kernel has {usual_files:,})" if usual_files else ""
        self._progress = progress
        self._stop = stop
        self._since = time.time()
        self._report_at = time.monotonic() + _REPORT_SECONDS
        self._reported = 0

    def __call__(self) -> bool:
        """Return whether to stop."""
        if self._logs and time.monotonic() >= self._report_at:
            self._report_at = time.monotonic() + _REPORT_SECONDS
            compiled = max(self._count_compiled(log) for log in self._logs)
            if compiled > self._reported:
                self._reported = compiled
                self._progress(f"compiling: {compiled:,} files so far{self._total}")
        return self._stop is not None and self._stop()

    def _count_compiled(self, path: Path) -> int:
        try:
            if path.stat().st_mtime < self._since:  # the build before this one
                return 0
            return path.read_bytes().count(b"\n  CC ")
        except OSError:
            return 0
