"""Calibrations on disk: one JSON file for a workload on a testbed, the raw values beside the result.

The raw values are what counts; the result is computed from them again on every load, so a better analysis
applies to old measurements too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from bisector.adapters.system.files import write_atomically
from bisector.errors import FirmwareChanged, InfrastructureError, RequestError
from bisector.model.machines.firmware import firmware_difference, machine_and_firmware
from bisector.schemas.documents.json_reader import read_json
from bisector.stats.aa_analysis import AABoot, Calibration, Known, calibrate

CALIBRATION_FORMAT = 1


def path_of(state: Path, workload: str, testbed: str, metric: str) -> Path:
    """Return where the calibration of a workload's metric on a testbed is kept."""
    name = "@".join(re.sub(r"[^A-Za-z0-9._-]", "_", part) for part in (workload, metric, testbed))
    return state / "calibrations" / f"{name}.json"


@dataclass(frozen=True, slots=True)
class StoredCalibration:
    """A stored calibration. facts: commit, recipe, payload, clock, unit; others do not compare.

    boot_seconds, run_seconds: what each boot and its average run took, parallel to boots. machine: which one
    it was and its firmware, as the boots told it; none where an earlier version kept them.
    """

    facts: Mapping[str, str]
    boots: tuple[AABoot, ...] = ()
    boot_seconds: tuple[float, ...] = ()
    run_seconds: tuple[float, ...] = ()
    machine: Mapping[str, str] = field(default_factory=dict)

    def on_machine(self, facts: Mapping[str, str], testbed: str) -> StoredCalibration:
        """Return this with what one more boot reports about its machine. Raises FirmwareChanged."""
        changed = firmware_difference([self.machine], facts, one_testbed=True)
        if changed is not None:
            what = changed.subject(f"the testbed '{testbed}'")
            raise FirmwareChanged(
                f"{what} changed since this calibration began: old and new boots cannot be compared",
                details=str(changed),
                cure="put it back; or begin anew with --fresh",
            )
        return replace(self, machine={**machine_and_firmware(facts), **self.machine})

    def with_boot(self, boot: AABoot, boot_seconds: float, run_seconds: float) -> StoredCalibration:
        """Return this with one boot more."""
        return replace(
            self,
            boots=(*self.boots, boot),
            boot_seconds=(*self.boot_seconds, boot_seconds),
            run_seconds=(*self.run_seconds, run_seconds),
        )

    def first(self, boots: int) -> StoredCalibration:
        """Return this with its first boots alone."""
        return replace(
            self,
            boots=self.boots[:boots],
            boot_seconds=self.boot_seconds[:boots],
            run_seconds=self.run_seconds[:boots],
            machine=self.machine if boots else {},
        )

    def analyse(self, alpha: float = 0.05) -> Calibration:
        """Return what the boots say; the same boots always say the same. Raises RequestError if too few."""
        return calibrate(
            self.boots,
            np.random.default_rng(0),
            alpha=alpha,
            boot_cost=float(np.mean(self.boot_seconds or (0.0,))),
            run_cost=float(np.mean(self.run_seconds or (1.0,))),
            by_repetition=self.facts.get("clock") == "instructions",
        )


def save(path: Path, kept: StoredCalibration) -> None:
    """Write a calibration, whole or not at all."""
    write_atomically(path, json.dumps({"version": CALIBRATION_FORMAT, **asdict(kept)}, indent=1))


def load(path: Path) -> StoredCalibration | None:
    """Return a calibration, None if nothing was measured. Raises InfrastructureError if it is unreadable."""
    if not path.exists():
        return None
    try:
        data = read_json(path)
        if data["version"] != CALIBRATION_FORMAT:
            raise ValueError(f"version {data['version']}")
        return StoredCalibration(
            facts=data["facts"],
            boots=tuple(AABoot(b["testbed"], tuple(b["values"]), tuple(b["at"])) for b in data["boots"]),
            boot_seconds=tuple(data["boot_seconds"]),
            run_seconds=tuple(data["run_seconds"]),
            machine=dict(data.get("machine", {})),
        )
    except (RequestError, ValueError, KeyError, TypeError) as error:
        raise InfrastructureError(
            f"{path}: not a calibration",
            details=str(error),
            cure="begin anew: 'perfbisect calibrate ... --fresh'; or remove the file",
        ) from error


def load_known(state: Path, workload: str, testbeds: Sequence[str], metric: str) -> Known | None:
    """Return what is known of a workload on the first testbed that was calibrated, None if none was."""
    for testbed in testbeds:
        kept = load(path_of(state, workload, testbed, metric))
        try:
            if kept is not None:
                noise = kept.analyse().variance_components()
                return Known(noise, float(np.mean(kept.boot_seconds)), float(np.mean(kept.run_seconds)))
        except RequestError:  # interrupted before there were two boots
            continue
    return None
