"""A calibration as people and programs read it; what the command refuses is in tests/golden."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from bisector.interfaces.cli.calibrate import calibration_json, calibration_text
from bisector.stats.aa_analysis import AABoot, Calibration, calibrate


def calibration(boots: int, boot_sd: float = 1.0) -> Calibration:
    random = np.random.default_rng(1)
    return calibrate(
        [
            AABoot(
                "t",
                tuple(random.normal(100 + boot_sd * random.normal(), 1, 10)),
                tuple(range(60 * b, 60 * b + 10)),
            )
            for b in range(boots)
        ],
        random,
        boot_cost=0.0,
        run_cost=1.0,
    )


def test_the_text_has_levels_spreads_and_the_smallest_effects(tmp_path: Path) -> None:
    result = calibration(5)
    shown = calibration_text(result, tmp_path / "kept.json")
    assert "from 50 runs in 5 boots" in shown
    assert "need >= 6" in shown
    assert "runs a boot" in shown
    smallest = f"{100 * result.smallest_effect(*result.smallest[0][:2]):.2g}%"
    assert smallest in shown
    assert str(tmp_path / "kept.json") in shown


def test_what_few_boots_cannot_say_is_said(tmp_path: Path) -> None:
    shown = calibration_text(calibration(2), tmp_path)
    assert shown.count("not known; it takes four boots") == 2, "drift and false alarms"
    assert "1 run a boot\n" in shown
    assert "e+" not in calibration_text(calibration(2, boot_sd=60.0), tmp_path), "spreads of 100% and more"


def test_json_holds_the_smallest_effects_by_boots_and_runs() -> None:
    result = calibration(5)
    data = json.loads(json.dumps(calibration_json(result)))
    assert data["boots"] == 5
    first = data["smallest"][0]
    assert first["effect"] == result.smallest_effect(first["boots"], first["runs"])
