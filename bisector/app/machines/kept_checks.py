"""Deep checks of machines on disk: the last one of each, for lists and for whoever asks later."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.errors import RequestError
from bisector.model.machines.lab_findings import LabFinding, MachineFindings

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring

_VERSION = 1


@dataclass(frozen=True, slots=True)
class KeptCheck:
    """at: seconds since the epoch when it began."""

    machine: MachineFindings
    at: float


def keep_check(wiring: Wiring, testbed: str, machine: MachineFindings, at: float) -> None:
    """Keep what a deep check found, in place of the one before."""
    from bisector.adapters.system.files import write_atomically

    value = {"version": _VERSION, "at": at, **asdict(machine)}
    write_atomically(_path(wiring, testbed), json.dumps(value, indent=1))


def last_check(wiring: Wiring, testbed: str) -> KeptCheck | None:
    """Return the last deep check of a testbed, None if there was none, or it cannot be read."""
    from bisector.schemas.documents.json_reader import read_json

    path = _path(wiring, testbed)
    if not path.exists():
        return None
    try:
        data = read_json(path)
        findings = tuple(LabFinding(**one) for one in data["findings"])
        return KeptCheck(MachineFindings(data["name"], findings, data["seconds"]), float(data["at"]))
    except (RequestError, ValueError, KeyError, TypeError):
        return None


def _path(wiring: Wiring, testbed: str) -> Path:
    return wiring.settings.state_dir / "lab-checks" / testbed / "check.json"
