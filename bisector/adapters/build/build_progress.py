"""What goes on around a build on a builder: telling how far it is, and taking in what it sends."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from bisector.adapters.system.archive import unpack_tar
from bisector.adapters.system.files import write_error
from bisector.ports import Progress

_MAX_BYTES = 16 << 30
"""Of a build's results: all modules with debug information have some GiB."""

_TELL_SECONDS = 5.0
"""How often progress is told while compiling."""


class Watch:
    """Asked by the running play whether to stop; uses the occasion to tell how far the compiler is.

    folder: the builder's, when its files can be read from here; whole: files of a build from nothing, 0 if
    no build has told yet.
    """

    def __init__(
        self, folder: Path | None, whole: int, progress: Progress, stop: Callable[[], bool] | None
    ) -> None:
        self._logs = _logs(folder) if folder else ()
        self._whole = f" (a whole kernel has {whole:,})" if whole else ""
        self._progress = progress
        self._stop = stop
        self._since = time.time()
        self._tell_at = time.monotonic() + _TELL_SECONDS
        self._told = 0

    def __call__(self) -> bool:
        """Return whether to stop."""
        if self._logs and time.monotonic() >= self._tell_at:
            self._tell_at = time.monotonic() + _TELL_SECONDS
            compiled = max(self._compiled(log) for log in self._logs)
            if compiled > self._told:
                self._told = compiled
                self._progress(f"compiling: {compiled:,} files so far{self._whole}")
        return self._stop is not None and self._stop()

    def _compiled(self, path: Path) -> int:
        try:
            if path.stat().st_mtime < self._since:  # the build before this one
                return 0
            return path.read_bytes().count(b"\n  CC ")
        except OSError:
            return 0


def _logs(folder: Path) -> tuple[Path, ...]:
    """Where the two drivers write what the compiler says."""
    work = folder / "builder" / "work"
    return (work / "tuxmake" / "build.log", work / "build.log")


def unpack(artefacts: Path, folder: Path) -> None:
    """Unpack what a builder sent into a new folder and remove it. Raises InfrastructureError."""
    try:
        folder.mkdir()
        unpack_tar(artefacts, folder, max_bytes=_MAX_BYTES)
        artefacts.unlink()
    except OSError as error:
        raise write_error(folder, error) from error
