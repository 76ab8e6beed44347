"""A machine that is rebooted before each boot, and the same that is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.machine import ssh_testbed
from bisector.app.testbeds.kexec_testbeds import kexec_testbeds
from bisector.app.wiring import Wiring
from bisector.schemas.lab import TestbedSpec, lab_from_inventory
from bisector.schemas.settings import Settings
from bisector.simulation.histories import linear
from bisector.simulation.noise_model import LabModel, SyntheticLab
from bisector.testing.fake_testbed import FakeTestbed


def test_the_machine_sees_one_user_and_the_inventory_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wiring = Wiring(Settings(cache_dir=tmp_path, state_dir=tmp_path))
    listing = {"_meta": {"hostvars": {"box": {"ansible_host": "localhost"}}}, "testbeds": {"hosts": ["box"]}}
    wiring.lab = lab_from_inventory(listing, tmp_path / "lab.yml")
    seen: list[tuple[TestbedSpec, object]] = []
    keepers: list[object] = []

    def machine(spec: TestbedSpec, _: object, user: object, __: object, keeper: object) -> FakeTestbed:
        seen.append((spec, user))
        keepers.append(keeper)
        made = FakeTestbed(spec.name, SyntheticLab(linear(2), LabModel(), {}, 1))
        made.keeper = "that of the first"  # type: ignore[attr-defined]
        return made

    monkeypatch.setattr(ssh_testbed, "SSHTestbed", machine)
    assert list(kexec_testbeds(wiring, "box")) == ["reboot", "kexec"]
    assert [spec.variables.between_boots for spec, _ in seen] == ["reboot", "kexec"]
    assert seen[0][1] is seen[1][1], "the second would find the mark of another perfbisect"
    assert keepers == [None, "that of the first"], "one of its own would log in while the other measures"
    assert wiring.lab.testbed("box").variables.between_boots == "reboot"
