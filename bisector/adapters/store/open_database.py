"""Opens the database of bisections, so that its tables are those of this version."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from bisector.adapters.store import migration
from bisector.adapters.store.sqlite_file import SqliteFile
from bisector.adapters.system.files import make_private_folder, os_errors_reported
from bisector.ports import Progress


def open_state_file(
    path: Path,
    before_conversion: Callable[[], None] = lambda: None,
    progress: Progress = lambda text: None,
) -> SqliteFile:
    """Open or make a SQLite file; one of an earlier version is converted.

    before_conversion: called before that; it may raise. Raises InfrastructureError: unusable, or of a newer
    version.
    """
    with os_errors_reported(
        f"the state folder {path.parent} cannot be made",
        cure="use another one: PERFBISECT_STATE_DIR, or state_dir in perfbisect.toml",
    ):
        make_private_folder(path.parent)
    file = SqliteFile(path)
    with suppress(OSError):  # of another user, who lets us write to it
        path.chmod(0o600)
    known = migration.version(file)
    if known < migration.SCHEMA:
        if known:
            before_conversion()
        migration.upgrade(file, progress)
    return file
