"""Room on the disk of the state folder: noticed when it is gone, and a reserve to end well with.

SQLite needs room even to write down that there is none. So the executor keeps a file as ballast, and throws
it off when the disk is full: what was measured is then recorded, boots are closed, and the bisection can be
resumed.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from bisector.errors import InfrastructureError

_BALLAST_BYTES = 1 << 20
"""Closing a bisection writes some twenty pages of 4 KiB to two databases and logs; several times that."""
_PROBE_BYTES = 64 << 10
"""More than a run's raw output (the agent keeps its end), the largest thing written between two probes."""


class Room:
    """The disk below a folder. Raises InfrastructureError when there is none from the start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ballast = folder / "ballast"
        try:
            _write(self._ballast, _BALLAST_BYTES)
        except OSError as error:
            self.release()
            raise self.full(str(error)) from error

    def short(self) -> bool:
        """Try to write; if that fails throw the ballast off and return True."""
        probe = self._folder / "probe"
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
        """Give the reserve back."""
        with contextlib.suppress(OSError):
            self._ballast.unlink(missing_ok=True)

    def full(self, details: str = "") -> InfrastructureError:
        """Return the error to tell."""
        return InfrastructureError(
            f"the disk of {self._folder} is full",
            details=details,
            cure="make room there (megabytes are enough), then: perfbisect resume",
        )


def _write(path: Path, count: int) -> None:
    """Take up room for real: a hole in a file would cost nothing and promise nothing."""
    with path.open("wb") as file:
        file.write(bytes(count))
        file.flush()
        os.fsync(file.fileno())
