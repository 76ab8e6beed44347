"""Measuring an A/A calibration through the ports: every boot is told when it ends."""

import contextlib
from pathlib import Path

import numpy as np
import pytest

from bisector.app.calibrate import (
    KEXEC_ORDER,
    KexecComparison,
    Measured,
    as_samples,
    compare_kexec,
    measure,
)
from bisector.errors import RequestError, TestbedLost
from bisector.model.goal import Metric, TestbedClock, Threshold
from bisector.ports import BuildOrder
from bisector.simulation.histories import linear
from bisector.simulation.noise_model import LabModel, SyntheticLab
from bisector.stats.aa_analysis import AABoot, calibrate
from bisector.testing.fake_testbed import FakeTestbed, job
from bisector.testing.fakes import METRIC, FakeBuilder, FakeClock, Faults


def calibrated(
    tmp_path: Path, boots: range, faults: Faults | None = None, clock: TestbedClock = "wall"
) -> list[Measured]:
    graph = linear(3)
    lab = SyntheticLab(graph, LabModel(run_noise=1.0, clock=clock, copied=True), {}, 1)
    kernel = FakeBuilder(lab, tmp_path).build(BuildOrder(graph.shas[1], "fake"), print)
    testbeds = [FakeTestbed(name, lab, faults=faults) for name in ("a", "b")]
    assert {testbed.clock for testbed in testbeds} == {clock}
    done: list[Measured] = []
    with contextlib.suppress(TestbedLost):
        for boot in measure(
            kernel,
            testbeds,
            as_samples(job(tmp_path), clock),
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


def test_boots_of_emulated_guests_are_no_copies_of_each_other(tmp_path: Path) -> None:
    """With the same random numbers they would be, and a noise of zero would be handed on to searches."""
    boots = [m.boot for m in calibrated(tmp_path, range(8), clock="instructions")]
    assert len({b.values for b in boots}) == 8
    found = calibrate(boots, np.random.default_rng(1), boot_cost=10, run_cost=1, by_repetition=True)
    assert 0.005 < found.run_sd.estimate < 0.02


def test_boots_by_the_wall_clock_are_left_alone(tmp_path: Path) -> None:
    copies = {m.boot.values for m in calibrated(tmp_path, range(8))}
    assert len(copies) == 2, "one a testbed, in this lab: nothing is asked of the guest"


@pytest.mark.parametrize("boots", [range(0), range(4, 4)])
def test_nothing_to_do_is_nothing_done(tmp_path: Path, boots: range) -> None:
    assert calibrated(tmp_path, boots) == []


def kexec_compared(boots: int, factor: float, threshold: Threshold) -> KexecComparison:
    random = np.random.default_rng(3)
    metric = Metric("real", "s", "lower", threshold)
    measured = []
    for number in range(boots):
        way = KEXEC_ORDER[number % len(KEXEC_ORDER)]
        level = (factor if way == "kexec" else 1.0) * (1 + 0.005 * random.normal())
        values = tuple(float(v) for v in level * (1 + 0.002 * random.normal(size=5)))
        measured.append((way, AABoot(way, values, (0.0,) * 5), 30.0 if way == "kexec" else 90.0))
    return compare_kexec(metric, measured, alpha=0.05)


def test_a_difference_is_shown_with_its_direction_and_what_kexec_saves() -> None:
    result = kexec_compared(12, 1.05, Threshold(0.02))
    assert result.compared.significant and result.compared.verdict == "worse"
    assert 0.03 < result.compared.effect.estimate < 0.07
    assert result.saved == 60.0
    assert (result.compared.a.name, result.compared.b.name) == ("after a reboot", "by kexec")


def test_no_difference_is_the_same_only_within_the_threshold() -> None:
    assert kexec_compared(16, 1.0, Threshold(0.05)).compared.verdict == "same"
    assert kexec_compared(16, 1.0, Threshold(0.05, relative=False)).compared.verdict == "same", (
        "0.05 s of 1 s"
    )
    assert kexec_compared(8, 1.0, Threshold(0.0001)).compared.verdict != "same"


@pytest.mark.parametrize(
    ("values", "threshold", "why"),
    [
        ({"reboot": (), "kexec": (1.0,)}, Threshold(0.02), "no boot after a reboot has a run"),
        ({"reboot": (1.0,), "kexec": ()}, Threshold(0.02), "no boot by kexec has a run"),
        ({"reboot": (0.0,), "kexec": (1.0,)}, Threshold(0.02, relative=False), "is 0 after a reboot"),
    ],
)
def test_what_cannot_be_compared_is_a_wrong_request(
    values: dict[str, tuple[float, ...]], threshold: Threshold, why: str
) -> None:
    metric = Metric("real", "s", "lower", threshold)
    measured = [(way, AABoot(way, values[way], (0.0,) * len(values[way])), 30.0) for way in KEXEC_ORDER]
    with pytest.raises(RequestError, match=why) as caught:
        compare_kexec(metric, measured, alpha=0.05)
    assert caught.value.cure
