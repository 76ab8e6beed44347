"""A/A analysis: what was put into the data comes out again."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from bisector.adapters.store import calibrations
from bisector.errors import InfrastructureError, RequestError
from bisector.simulation.histories import linear
from bisector.simulation.noise_model import LabModel, SyntheticLab
from bisector.stats.aa_analysis import RANDOM_SPLITS, AABoot, Calibration, calibrate, false_alarms
from bisector.stats.variance_components import components


def boots(
    count: int = 12, runs: int = 10, seed: int = 1, pace: float = 30.0, **settings: Any
) -> list[AABoot]:
    lab = SyntheticLab(linear(1), LabModel(**settings), {}, seed)
    result = []
    for b in range(count):
        boot = lab.boot(0, 0, "t", str(b))
        at = [pace * b + k for k in range(runs)]
        result.append(AABoot("t", tuple(boot.run(k, t) for k, t in enumerate(at)), tuple(at)))
    return result


def analysed(data: list[AABoot], **options: Any) -> Calibration:
    return calibrate(data, np.random.default_rng(1), **{"boot_cost": 0.0, "run_cost": 1.0, **options})


def test_variance_components_are_recovered_and_their_limits_hold_the_truth() -> None:
    inside = {"run": 0, "boot": 0}
    estimates = []
    for seed in range(60):
        c = analysed(boots(seed=seed, run_noise=1.0, boot_noise=0.7))
        inside["run"] += c.run_sd.low <= 0.01 <= c.run_sd.high
        inside["boot"] += c.boot_sd.low <= 0.007 <= c.boot_sd.high
        estimates.append((c.run_sd.estimate**2, c.boot_sd.estimate**2))
    run, boot = np.sqrt(np.mean(estimates, axis=0))
    assert run == pytest.approx(0.01, rel=0.05)
    assert boot == pytest.approx(0.007, rel=0.12)
    assert min(inside.values()) >= 51  # 95% of 60 is 57; below 51 happens once in 300 times


def test_runs_of_one_boot_are_not_independent_and_the_alarm_rate_says_so() -> None:
    rates = [analysed(boots(seed=s, run_noise=1.0, boot_noise=1.0)) for s in range(8)]
    assert np.mean([c.naive_alarms for c in rates]) > 0.3
    assert np.mean([c.alarms for c in rates]) < 0.08


def test_alarms_are_those_of_welchs_test_split_by_split() -> None:
    random = np.random.default_rng(3)
    groups = [random.normal(random.normal(0, 0.7), 1.0, int(random.integers(2, 9))) for _ in range(7)]
    naive, alarms = false_alarms(groups, 0.05, np.random.default_rng(1))
    again, by_run, by_boot = np.random.default_rng(1), 0, 0
    for _ in range(RANDOM_SPLITS):
        order = again.permutation(7)
        halves = [[groups[i] for i in order[:3]], [groups[i] for i in order[3:]]]
        runs = [np.concatenate(half) for half in halves]
        means = [[g.mean() for g in half] for half in halves]
        by_run += stats.ttest_ind(*runs, equal_var=False).pvalue < 0.05
        by_boot += stats.ttest_ind(*means, equal_var=False).pvalue < 0.05
    assert (naive, alarms) == (by_run / RANDOM_SPLITS, by_boot / RANDOM_SPLITS)
    assert false_alarms(groups[:3], 0.05, random) == (None, None)


@pytest.mark.filterwarnings("error")
def test_halves_without_spread_are_an_alarm_where_they_differ() -> None:
    random = np.random.default_rng(1)
    assert false_alarms([np.zeros(3)] * 6, 0.05, random) == (0.0, 0.0)
    naive, alarms = false_alarms([np.zeros(2), np.zeros(2), np.ones(2), np.ones(2)], 0.05, random)
    # {0, 0} against {1, 1} in one of three splits; {0, 1} against {0, 1} in the others
    assert naive == alarms == pytest.approx(1 / 3, abs=0.08)


def test_drift_is_found_with_its_size_and_is_no_boot_effect() -> None:
    c = analysed(boots(run_noise=0.2, drift="linear", drift_size=10.0))
    per_hour = 10.0 / 100 / (100 * 26 / 3600)
    assert c.drifts
    assert c.drift is not None
    assert c.drift.estimate == pytest.approx(per_hour, rel=0.15)
    assert c.boot_sd.estimate < 0.002
    assert any("drifts" in w for w in c.warnings)
    still = sum(analysed(boots(seed=s)).drifts for s in range(100))
    assert still <= 12  # 5 expected


def test_a_drift_that_may_be_chance_is_not_taken_out_of_the_numbers() -> None:
    """It would make the spread between boots look smaller than it is, in every calibration."""
    data = boots(seed=2, run_noise=1.0, boot_noise=2.0)
    c = analysed(data)
    assert c.drift is not None
    assert not c.drifts
    assert abs(c.drift.estimate) > 0.001, "there would be something to take out"
    run_sd, _, boot_sd, _ = components([np.log(b.values) for b in data])
    assert c.boot_sd.estimate == pytest.approx(boot_sd.estimate, rel=1e-9)
    assert c.run_sd.estimate == pytest.approx(run_sd.estimate, rel=1e-9)


def test_modes_are_seen_and_whether_boots_or_runs_have_them() -> None:
    c = analysed(boots(count=20, seed=3, run_noise=2.0, noise="bimodal"))
    assert c.modes is None or c.modes.by_boot  # 2.9 deviations apart: on the edge of what can be told
    wide = [
        AABoot("t", tuple(100 + 10 * (b % 3 == 0) + 0.1 * k for k in range(8)), tuple(range(8)))
        for b in range(9)
    ]
    modes = analysed(wide).modes
    assert modes is not None
    assert modes.by_boot
    assert modes.high - modes.low == pytest.approx(0.1, rel=0.1)
    assert modes.share == pytest.approx(1 / 3, abs=0.01)
    mixed = [
        AABoot("t", tuple(100 + 10 * ((b + k) % 3 == 0) + 0.1 * k for k in range(9)), tuple(range(9)))
        for b in range(9)
    ]
    modes = analysed(mixed).modes
    assert modes is not None
    assert not modes.by_boot
    assert sum(analysed(boots(seed=s)).modes is not None for s in range(40)) <= 1


def test_an_outlier_is_reported() -> None:
    data = boots()
    data[3] = AABoot("t", (*data[3].values[:-1], 134.0), data[3].at)
    c = analysed(data)
    assert c.outliers == 1
    assert any("far off" in w for w in c.warnings)


def test_boots_whose_spread_was_not_seen_are_not_taken_to_be_equal() -> None:
    # Seen in a guest under the instruction clock: three boots, spread 0% with an interval up to 0.04%.
    values = (
        (0.155433, 0.155427, 0.155446, 0.155405),
        (0.155447, 0.155419, 0.155397, 0.155448),
        (0.155399, 0.155395, 0.155446, 0.155407),
    )
    seen = calibrate(
        [AABoot("guest", v, (0.0, 1.0, 2.0, 3.0)) for v in values],
        np.random.default_rng(0),
        boot_cost=60.0,
        run_cost=3.0,
        by_repetition=True,
    )
    assert seen.boot_sd.estimate == 0 < seen.boot_sd.high
    assert 1 <= seen.runs_per_boot < 20


def test_equal_values_and_negative_values_are_no_trouble() -> None:
    c = analysed([AABoot("t", (5.0, 5.0), (0.0, 1.0))] * 4)
    assert c.run_sd.estimate == c.boot_sd.estimate == 0.0
    assert any("all values are equal" in w for w in c.warnings)
    c = analysed([AABoot("t", (-5.0, -5.1, -4.9), (0.0, 1.0, 2.0))] * 4)
    assert c.level == pytest.approx(-5.0)
    assert c.run_sd.estimate == pytest.approx(0.02, rel=0.2)


def test_the_pattern_of_repetitions_is_no_noise_under_the_instruction_clock() -> None:
    data = boots(run_noise=0.0, clock="instructions")
    assert analysed(data).run_sd.estimate > 0.01
    assert analysed(data, by_repetition=True).run_sd.estimate == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("data", "cure"),
    [
        ([], "measure more boots"),
        ([AABoot("t", (1.0, 2.0), (0.0, 1.0))], "measure more boots"),
        ([AABoot("t", (1.0,), (0.0,))] * 5, "measure more boots"),
        ([AABoot("t", (1.0, math.nan), (0.0, 1.0))] * 2, "leave that run out"),
    ],
)
def test_too_little_or_broken_data_is_refused(data: list[AABoot], cure: str) -> None:
    with pytest.raises(RequestError) as refused:
        analysed(data)
    assert refused.value.cure == cure


def test_what_is_stored_comes_back_as_the_planners_prior(tmp_path: Path) -> None:
    path = calibrations.path_of(tmp_path, "pipe-test", "guest 1/a", "time")
    assert calibrations.load_known(tmp_path, "pipe-test", ["guest 1/a"], "time") is None
    kept = calibrations.StoredCalibration({"commit": "abc"})
    for boot in boots():
        kept = kept.with_boot(boot, 5.0, 1.0)
    calibrations.save(path, kept)
    assert calibrations.load(path) == kept
    found = calibrations.load_known(tmp_path, "pipe-test", ["elsewhere", "guest 1/a"], "time")
    assert found is not None
    assert (found.boot_seconds, found.run_seconds) == (5.0, 1.0)
    prior = found.noise
    assert prior is not None
    assert prior.run_sd == pytest.approx(0.01, rel=0.2)
    assert (prior.run_df, prior.boot_df) == (108, 11)
    path.write_text("{")
    with pytest.raises(InfrastructureError):
        calibrations.load(path)


def test_the_table_doubles_the_boots_from_two_to_sixteen() -> None:
    table = analysed(boots()).smallest
    assert sorted({b for b, _, _ in table}) == [2, 4, 8, 16]
    assert all(few > many for b, k, few in table for more, same, many in table if (more, same) == (2 * b, k))
