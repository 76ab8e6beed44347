"""The log of a serial console: bounded on disk however much a guest prints; its beginning and end are kept.

libvirt lets virtlogd write the consoles of guests, which renames the file at 2 MiB to console.log.0 and keeps
three such parts (virtlogd.conf). The beginning, which has the boot, would be lost then: a second link to the
first part keeps it. Where nobody renames the file (a console of a machine, `stdio_handler = "file"` in
qemu.conf), it is cut here in the same way. `join` makes one file of it all at the end.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from bisector.adapters.system.files import replacing_or_os_error

log = logging.getLogger(__name__)

HEAD_BYTES = 2 << 20
"""Of the beginning: virtlogd's max_size. A boot prints 20 to 200 KB."""

TAIL_BYTES = 6 << 20
"""Of the end: virtlogd's three parts."""

_CUT_BYTES = 2 * HEAD_BYTES
"""A file of this size is cut here; virtlogd would have renamed it before."""

_MISSING = b"\n[perfbisect: more was printed than is kept; what came between these lines is missing]\n"


class ConsoleLog:
    """A console's log in `path` and files beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._first = path.with_name(f"{path.name}.first")
        self._inode, self._offset = 0, 0

    def begin(self) -> None:
        """Make the file, empty. Raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()
        self._first.unlink(missing_ok=True)
        self._first.hardlink_to(self.path)

    def append(self, data: bytes) -> None:
        """Write what came; for consoles that are captured here. Raises OSError."""
        with self.path.open("ab") as file:
            file.write(data)
        self._cut(HEAD_BYTES)

    def end(self, count: int) -> bytes:
        """Return the last bytes, `count` at most; none where there is no log."""
        try:
            self._cut(_CUT_BYTES)
            data = _tail((self.path,), count)
            if len(data) < count:  # a new part has just begun
                data = _tail((*self._parts()[-1:], self.path), count)
        except OSError:
            return b""
        return data

    def read_new(self) -> bytes:
        """Return what came since the last call; from a flood, what is left of it."""
        try:
            data = b""
            with self.path.open("rb") as file:
                now = os.fstat(file.fileno())
                if now.st_ino != self._inode or now.st_size < self._offset:
                    data = self._rest_of_renamed()
                    self._offset = 0
                file.seek(max(self._offset, now.st_size - _CUT_BYTES))
                data += file.read(_CUT_BYTES)
                self._inode, self._offset = now.st_ino, file.tell()
        except OSError:
            return b""
        return data

    def join(self) -> None:
        """Make one file of all parts, within the bounds, when nothing more comes. Never raises."""
        try:
            parts = (*self._parts(), self.path)
            size = sum(part.stat().st_size for part in parts)
            whole = not self._first.exists() or self._first.samefile(parts[0])
            if not whole or size > HEAD_BYTES + TAIL_BYTES:
                log.warning(
                    "%s: more was printed than is kept, which is the beginning and the end", self.path
                )
                with (self._first if self._first.exists() else parts[0]).open("rb") as file:
                    self._replace(file.read(HEAD_BYTES) + _MISSING + _tail(parts, TAIL_BYTES))
            elif len(parts) > 1:
                self._replace(_tail(parts, size))
            for part in (*parts[:-1], self._first):
                part.unlink(missing_ok=True)
        except OSError as error:
            log.warning("%s stays as it is: %s", self.path, error)

    def _replace(self, data: bytes) -> None:
        with replacing_or_os_error(self.path) as partial:
            partial.write_bytes(data)

    def _parts(self) -> list[Path]:
        """Return the parts that were full, the oldest first."""
        found = [p for p in self.path.parent.glob(f"{self.path.name}.*") if p.suffix[1:].isdigit()]
        return sorted(found, key=lambda part: -int(part.suffix[1:]))

    def _rest_of_renamed(self) -> bytes:
        """Return the rest of the part that was being read, where it has just become full."""
        for part in self._parts()[-1:]:
            with part.open("rb") as file:
                if os.fstat(file.fileno()).st_ino == self._inode:
                    file.seek(self._offset)
                    return file.read(_CUT_BYTES)
        return b""

    def _cut(self, size: int) -> None:
        """Make a full part of a file that is larger. Its writer appends: what follows comes at the start."""
        if self.path.stat().st_size <= size:
            return
        if self._first.exists() and self._first.samefile(self.path):
            with self.path.open("rb") as file:
                beginning = file.read(HEAD_BYTES)
            self._first.unlink()
            self._first.write_bytes(beginning)
        self.path.with_name(f"{self.path.name}.0").write_bytes(_tail((self.path,), TAIL_BYTES))
        os.truncate(self.path, 0)


def is_cut(path: Path) -> bool:
    """Return whether `join` left something out of a console's log."""
    try:
        if path.stat().st_size <= HEAD_BYTES:
            return False
        with path.open("rb") as file:
            return _MISSING in file.read(HEAD_BYTES + len(_MISSING))
    except OSError:
        return False


def _tail(parts: Sequence[Path], count: int) -> bytes:
    """Return the last bytes of several files, one after the other."""
    pieces: list[bytes] = []
    for part in reversed(parts):
        with part.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - count))
            pieces.insert(0, file.read(count))
        count -= len(pieces[0])
        if count <= 0:
            break
    return b"".join(pieces)
