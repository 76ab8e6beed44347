"""Space on the disk of the state folder, and a reserve that is released when the disk is full.

SQLite needs space even to record that there is none. So the executor keeps a reserve file and deletes it when
the disk is full: what was measured is then recorded, boots are closed, and the bisection can be resumed.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from bisector.errors import InfrastructureError

_RESERVE, _PROBE = "reserve", "probe"
_RESERVE_BYTES = 1 << 20
"""Several times what closing a bisection writes: about twenty 4 KiB pages to two databases and their logs."""
_PROBE_BYTES = 64 << 10
"""More than the largest file between two probes: the raw output of a run; the agent keeps only its end."""


def remove_reserve(folder: Path) -> None:
    """Delete the files that a killed process left there, a reserve and a probe."""
    for path in (folder / _RESERVE, folder / _PROBE):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


class DiskReserve:
    """The disk below a folder. Raises InfrastructureError when there is none from the start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reserve = folder / _RESERVE
        try:
            _write(self._reserve, _RESERVE_BYTES)
        except OSError as error:
            self.release()
            raise self.error(str(error)) from error

    def is_full(self) -> bool:
        """Try to write; if that fails delete the reserve and return True."""
        probe = self._folder / _PROBE
        try:
            _write(probe, _PROBE_BYTES)
        except OSError:
            self.release()
            return True
        finally:
            with contextlib.suppress(OSError):
                probe.unlink(missing_ok=True)
        return False

    def release(self) -> None:
        """Delete the reserve."""
        with contextlib.suppress(OSError):
            self._reserve.unlink(missing_ok=True)

    def error(self, details: str = "") -> InfrastructureError:
        """Return the error that says so."""
        return InfrastructureError(
            f"the disk of {self._folder} is full",
            details=details,
            cure="make room there (megabytes are enough), then: perfbisect resume",
        )


def _write(path: Path, count: int) -> None:
    """Write bytes to the disk: a hole in a file would reserve nothing."""
    with path.open("wb") as file:
        file.write(bytes(count))
        file.flush()
        os.fsync(file.fileno())
