"""Calibrations on disk: what is stored comes back, and what is not a calibration is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bisector.adapters.store import calibrations
from bisector.adapters.store.calibrations import StoredCalibration
from bisector.errors import InfrastructureError, RequestError
from bisector.stats.aa_analysis import AABoot

FACTS = {"commit": "abc", "unit": "s"}


def stored(boots: int = 6, *, clock: str = "wall") -> StoredCalibration:
    rng = np.random.default_rng(1)
    kept = StoredCalibration({**FACTS, "clock": clock})
    for _ in range(boots):
        values = tuple(100.0 + rng.normal() + rng.normal(size=5))
        kept = kept.with_boot(AABoot("box", values, tuple(map(float, range(5)))), 5.0, 1.5)
    return kept


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    path = calibrations.path_of(tmp_path, "pipe-test", "guest 1/a", "time")
    assert path.parent == tmp_path / "calibrations"
    assert "/" not in path.name and " " not in path.name
    assert calibrations.load(path) is None
    calibrations.save(path, stored())
    assert calibrations.load(path) == stored()
    calibrations.save(path, stored(7))
    assert calibrations.load(path) == stored(7)
    assert list(path.parent.iterdir()) == [path]


def test_a_boot_is_added_with_what_it_took() -> None:
    one, two = stored(1), stored(2)
    assert two.boots[0] == one.boots[0]
    assert (two.boot_seconds, two.run_seconds) == ((5.0, 5.0), (1.5, 1.5))


def test_what_no_boot_is_left_of_says_nothing_of_its_machine() -> None:
    told = stored(2).on_machine({"machine.bios": "F2"}, "box")
    assert (told.first(1).machine, told.first(0).machine) == ({"machine.bios": "F2"}, {})


def test_the_same_boots_always_say_the_same() -> None:
    assert stored().analyse() == stored().analyse()


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"boots": None},
        {"boots": [{"testbed": "box"}]},
        {"boots": [1]},
        {"facts": None, "version": None},
        {"run_seconds": 1},
        {"machine": "F2"},
    ],
)
def test_what_is_no_calibration_is_refused_with_its_cure(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "a.json"
    calibrations.save(path, stored(1))
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InfrastructureError, match="not a calibration") as caught:
        calibrations.load(path)
    assert "--fresh" in caught.value.cure


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '{"version": 1}'])
def test_a_file_that_is_cut_off_or_of_another_kind(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InfrastructureError, match="not a calibration"):
        calibrations.load(tmp_path / "a.json")


def test_the_first_calibrated_testbed_is_what_is_known(tmp_path: Path) -> None:
    def known(*testbeds: str) -> object:
        return calibrations.load_known(tmp_path, "toy", testbeds, "time")

    assert known("a", "b") is None
    calibrations.save(calibrations.path_of(tmp_path, "toy", "a", "time"), stored(1))
    assert known("a", "b") is None  # interrupted before there were two boots
    with pytest.raises(RequestError):
        stored(1).analyse()
    calibrations.save(calibrations.path_of(tmp_path, "toy", "b", "time"), stored())
    found = calibrations.load_known(tmp_path, "toy", ["a", "b"], "time")
    assert found is not None
    assert (found.boot_seconds, found.run_seconds) == (5.0, 1.5)
