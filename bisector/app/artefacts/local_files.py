"""Files of a bisection on this host: where another one measured, they come from the artefact store.

Records name files by their absolute path on the host that measured. Here each lies at the same place below
the bisection's folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
    return [(number, _with_local_paths(record, boots)) for number, record in records]


def fetch_boots(wiring: Wiring, bisection: str, records: Sequence[tuple[int, Record]]) -> None:
    """Fetch what boots on other hosts have left, as far as it is not here and can be had."""
    exchange, boots = wiring.exchange, wiring.bisection_folder(bisection) / "boots"
    if exchange is None:
        return
    for boot in sorted({record.boot for _, record in records if isinstance(record, Left | RunFailed)}):
        if is_boot_id(boot) and not (boots / boot).exists():
            exchange.fetch_folder(boot_artefact(bisection, boot), boots / boot)


def _with_local_paths(record: Record, boots: Path) -> Record:
    match record:
        case Booted():
            return replace(record, console=_local(record.console, boots, record.boot))
        case Ran():
            return replace(record, raw=_local(record.raw, boots, record.boot))
        case Left():
            monitors = [replace(m, folder=_local(m.folder, boots, record.boot)) for m in record.monitors]
            return replace(record, monitors=tuple(monitors))
    return record


def _local(recorded: str, boots: Path, boot: str) -> str:
    """Return where a file of a boot is here, or the recorded path if it is not here."""
    parts = PurePosixPath(recorded).parts
    below = next((parts[n:] for n in range(1, len(parts)) if parts[n - 1 : n + 1] == ("boots", boot)), None)
    if below is None or ".." in below:
        return recorded
    local = boots.joinpath(*below)
    return str(local) if local.exists() else recorded
