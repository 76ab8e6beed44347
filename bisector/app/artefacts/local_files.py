"""Files of a bisection on this host: where another one measured, they come from the artefact store.

Records name files by their absolute path on the host that measured. Here each lies at the same place below
the bisection's folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from bisector.model.artefacts import boot_artefact, is_boot_id
from bisector.model.records import Booted, Left, Ran, Record, RunFailed

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring


def with_local_files(
    wiring: Wiring, bisection: str, records: Sequence[tuple[int, Record]]
) -> Sequence[tuple[int, Record]]:
    """Return records that name the files of this host, as far as they are here or can be had.

    Whatever cannot be had keeps its path, which says where it is on the host that measured.
    """
    fetch_boots(wiring, bisection, records)
    boots = wiring.bisection_folder(bisection) / "boots"
    return [(number, rename_files(record, partial(_local, boots))) for number, record in records]


def fetch_boots(wiring: Wiring, bisection: str, records: Sequence[tuple[int, Record]]) -> None:
    """Fetch what boots on other hosts have left, as far as it is not here and can be had."""
    exchange, boots = wiring.exchange, wiring.bisection_folder(bisection) / "boots"
    if exchange is None:
        return
    for boot in sorted({record.boot for _, record in records if isinstance(record, Left | RunFailed)}):
        if is_boot_id(boot) and not (boots / boot).exists():
            exchange.fetch_folder(boot_artefact(bisection, boot), boots / boot)


def rename_files(record: Record, rename: Callable[[str, str], str]) -> Record:
    """Return a record with other names of its files. rename: of a recorded path and its boot."""
    match record:
        case Booted():
            return replace(record, console=rename(record.console, record.boot))
        case Ran():
            return replace(record, raw=rename(record.raw, record.boot))
        case Left():
            monitors = [replace(m, folder=rename(m.folder, record.boot)) for m in record.monitors]
            return replace(record, monitors=tuple(monitors))
    return record


def below_boots(recorded: str, boot: str) -> tuple[str, ...] | None:
    """Return the parts of a recorded path, beginning with the folder of its boot; None if it has none.

    The caller must check them for '..'.
    """
    parts = PurePosixPath(recorded).parts
    return next((parts[n:] for n in range(1, len(parts)) if parts[n - 1 : n + 1] == ("boots", boot)), None)


def _local(boots: Path, recorded: str, boot: str) -> str:
    """Return where a file of a boot is here, or the recorded path if it is not here."""
    below = below_boots(recorded, boot)
    if below is None or ".." in below:
        return recorded
    local = boots.joinpath(*below)
    return str(local) if local.exists() else recorded
