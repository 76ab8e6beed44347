"""Calibrations on disk: one JSON file for a workload on a testbed, the raw values beside the result.

The raw values are what counts; the result is computed from them again on every load, so a better analysis
applies to old measurements too.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bisector.core.calibration import Boot, Calibration, calibrate
from bisector.core.noise import Library
from bisector.errors import InfrastructureError

VERSION = 1


def path_of(state: Path, workload: str, testbed: str, metric: str) -> Path:
    """Return where the calibration of a workload's metric on a testbed is kept."""
    name = "@".join(re.sub(r"[^A-Za-z0-9._-]", "_", part) for part in (workload, metric, testbed))
    return state / "calibrations" / f"{name}.json"


def save(path: Path, boots: list[Boot], facts: dict[str, Any]) -> None:
    """Write the boots measured so far, whole or not at all. facts: commit, recipe, costs, for people."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {"version": VERSION, **facts, "boots": [asdict(b) for b in boots]}
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(data, indent=1), encoding="utf-8")
    partial.replace(path)


def load(path: Path) -> tuple[list[Boot], dict[str, Any]] | None:
    """Return (boots, facts), None if nothing was ever measured. Raises InfrastructureError if unreadable."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise ValueError(f"version {data['version']}")
        boots = [Boot(b["testbed"], tuple(b["values"]), tuple(b["at"])) for b in data["boots"]]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InfrastructureError(
            f"{path}: not a calibration", details=str(error), cure="calibrate again, or remove the file"
        ) from error
    return boots, {k: v for k, v in data.items() if k not in ("version", "boots")}


def analyse(
    boots: list[Boot], *, boot_seconds: float, run_seconds: float, alpha: float = 0.05
) -> Calibration:
    """Return the calibration of these boots; the same boots always give the same result."""
    return calibrate(
        boots, np.random.default_rng(0), alpha=alpha, boot_cost=boot_seconds, run_cost=run_seconds
    )


def library(state: Path, workload: str, testbed: str, metric: str) -> Library | None:
    """Return the planner's prior for a workload on a testbed, None where it was not calibrated."""
    found = load(path_of(state, workload, testbed, metric))
    if found is None or len(found[0]) < 2:
        return None
    return analyse(found[0], boot_seconds=0.0, run_seconds=1.0).library()
