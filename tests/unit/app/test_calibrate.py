"""Measuring an A/A calibration through the ports: every boot is told when it ends."""

import contextlib
from pathlib import Path

import pytest

from bisector.app.calibrate import Measured, measure
from bisector.errors import TestbedLost
from bisector.ports import BuildOrder
from bisector.simulation.histories import linear
from bisector.simulation.noise_model import LabModel, SyntheticLab
from bisector.testing.fake_testbed import FakeTestbed, job
from bisector.testing.fakes import METRIC, FakeBuilder, FakeClock, Faults


def calibrated(tmp_path: Path, boots: range, faults: Faults | None = None) -> list[Measured]:
    graph = linear(3)
    lab = SyntheticLab(graph, LabModel(run_noise=1.0), {}, 1)
    kernel = FakeBuilder(lab, tmp_path).build(BuildOrder(graph.shas[1], "fake"), print)
    testbeds = [FakeTestbed(name, lab, faults=faults) for name in ("a", "b")]
    done: list[Measured] = []
    with contextlib.suppress(TestbedLost):
        for boot in measure(
            kernel,
            testbeds,
            job(tmp_path),
            METRIC,
            boots=boots,
            runs=5,
            folder=tmp_path / "raw",
            clock=FakeClock(),
            progress=lambda text: None,
        ):
            done.append(boot)
    return done


def test_boots_go_round_the_testbeds_and_can_be_continued(tmp_path: Path) -> None:
    done = calibrated(tmp_path, range(4))
    assert [m.boot.testbed for m in done] == ["a", "b", "a", "b"]
    assert all(len(m.boot.values) == len(m.boot.at) == 5 for m in done)
    assert all(90 < v < 110 for m in done for v in m.boot.values)
    assert all(m.boot_seconds > 0 and m.run_seconds > 0 for m in done)
    assert len(calibrated(tmp_path, range(3, 4))) == 1


def test_what_was_measured_before_a_testbed_died_is_told(tmp_path: Path) -> None:
    faults = Faults(boot={3: TestbedLost("gone")})
    assert len(calibrated(tmp_path, range(4), faults)) == 2


@pytest.mark.parametrize("boots", [range(0), range(4, 4)])
def test_nothing_to_do_is_nothing_done(tmp_path: Path, boots: range) -> None:
    assert calibrated(tmp_path, boots) == []
