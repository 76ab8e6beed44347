"""Deep checks on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.app.machines.kept_checks import KeptCheck, keep_check, last_check
from bisector.app.wiring import Wiring
from bisector.model.machines.lab_findings import LabFinding, MachineFindings
from bisector.schemas.settings import Settings

FOUND = MachineFindings("testbed box", (LabFinding("ssh", "wrong", "no", "cure", "text", 1.5, True),), 3.0)


def test_what_was_kept_is_read_again(tmp_path: Path) -> None:
    wiring = Wiring(Settings(state_dir=tmp_path))
    assert last_check(wiring, "box") is None
    keep_check(wiring, "box", FOUND, 12.0)
    assert last_check(wiring, "box") == KeptCheck(FOUND, 12.0)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"findings": [{"colour": 1}]}'])
def test_a_damaged_file_is_no_check(tmp_path: Path, text: str) -> None:
    wiring = Wiring(Settings(state_dir=tmp_path))
    keep_check(wiring, "box", FOUND, 12.0)
    (tmp_path / "lab-checks" / "box" / "check.json").write_text(text)
    assert last_check(wiring, "box") is None
