"""The synthetic lab: noise has the deviation that was asked for, and draws do not depend on their order."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bisector.errors import RequestError
from bisector.schemas.noise_kinds import DRIFT_KINDS, NOISE_KINDS, DriftKind, NoiseKind
from bisector.simulation.histories import ancestors, branched, linear
from bisector.simulation.noise_model import LabModel, SyntheticLab
from bisector.simulation.testbed_traits import TestbedTraits

BOOTS, RUNS = 400, 50


def measured(**settings: Any) -> NDArray[np.float64]:
    lab = SyntheticLab(linear(1), LabModel(boot_seconds=0, build_seconds=0, **settings), {}, seed=7)
    return np.array([[lab.boot(0, 0, "t", str(b)).run(k, 0.0) for k in range(RUNS)] for b in range(BOOTS)])


def test_copied_boots_repeat_those_of_their_binary_on_a_testbed_unless_they_are_fresh() -> None:
    lab = SyntheticLab(linear(2), LabModel(copied=True, boot_noise=1.0, inert=1.0), {2: 1.0}, seed=7)

    def runs(commit: int, key: str, testbed: str = "t", *, layout: int = 0, fresh: bool = False) -> float:
        boot = lab.boot(commit, layout, testbed, key, fresh=fresh)
        return sum(boot.run(k, 0.0) for k in range(3)) - 3 * lab.value(lab.truth(commit))

    assert runs(0, "a") == runs(0, "b") == runs(1, "c")  # commit 1 changes nothing
    others = (runs(2, "a"), runs(0, "a", "u"), runs(0, "a", layout=1))
    fresh = (runs(0, "a", fresh=True), runs(0, "b", fresh=True))
    assert len({runs(0, "a"), *others, *fresh}) == 6
    assert runs(0, "a", fresh=True) == fresh[0]


@pytest.mark.parametrize("kind", [k for k in NOISE_KINDS if k != "outliers"])
def test_noise_has_the_stated_deviation_and_no_bias(kind: NoiseKind) -> None:
    values = measured(noise=kind, run_noise=2.0)
    tolerance = 0.15 if kind == "t3" else 0.04  # the variance of t3 has no variance of its own
    assert values.std() == pytest.approx(2.0, rel=tolerance)
    assert values.mean() == pytest.approx(100.0, abs=0.1)


def test_outliers_come_on_top_of_the_stated_deviation() -> None:
    values = measured(noise="outliers", run_noise=1.0).ravel()
    far = values > 105
    assert far.mean() == pytest.approx(0.05, abs=0.01)
    assert values[~far].std() == pytest.approx(1.0, rel=0.03)


def test_bimodal_modes_belong_to_boots() -> None:
    values = measured(noise="bimodal", run_noise=2.0)
    assert values.mean(axis=1).std() == pytest.approx(0.8 * 2.0, rel=0.1)
    assert (values - values.mean(axis=1, keepdims=True)).std() == pytest.approx(0.6 * 2.0, rel=0.05)


def test_ar1_correlates_neighbours_by_half() -> None:
    values = measured(noise="ar1", run_noise=1.0) - 100
    assert (values[:, 1:] * values[:, :-1]).mean() / (values**2).mean() == pytest.approx(0.5, abs=0.05)


def test_lognormal_is_slow_tailed_and_higher_is_better_turns_the_tail_around() -> None:
    for better, sign in (("lower", 1), ("higher", -1)):
        z = measured(noise="lognormal", better=better).ravel() - 100
        assert sign * (z**3).mean() / z.std() ** 3 > 1.5


def test_boot_and_build_noise_have_their_deviations() -> None:
    values = measured(run_noise=0.0, boot_noise=3.0)
    assert values[:, 0].std() == pytest.approx(3.0, rel=0.1)
    assert (values == values[:, :1]).all()
    lab = SyntheticLab(linear(400), LabModel(run_noise=0, build_noise=2.0), {}, seed=1)
    levels = [lab.boot(c, 0, "t", "x").run(0, 0.0) for c in range(401)]
    assert np.std(levels) == pytest.approx(2.0, rel=0.1)
    assert lab.boot(5, 0, "t", "x").run(0, 0.0) != lab.boot(5, 1, "t", "x").run(0, 0.0)


def test_background_is_a_walk_of_the_stated_deviation_over_the_range() -> None:
    model = LabModel(background=4.0)
    ends = [SyntheticLab(linear(64), model, {}, seed=s).truth(64) for s in range(400)]
    assert np.std(ends) == pytest.approx(4.0, rel=0.1)


def test_drift_kinds() -> None:
    model = LabModel(run_noise=0, drift_size=2.0)  # a visit costs 26
    far = 26.0 * 100

    def drifts(kind: DriftKind, at: float, seeds: int = 1) -> NDArray[np.float64]:
        labs = [
            SyntheticLab(linear(1), dataclasses.replace(model, drift=kind), {}, seed=s) for s in range(seeds)
        ]
        return np.array([lab.drift("t", at) for lab in labs])

    assert set(DRIFT_KINDS) == {"none", "linear", "walk", "step"}
    assert drifts("none", far) == 0
    assert drifts("linear", far) == pytest.approx(2.0)
    assert drifts("walk", far, 300).std() == pytest.approx(2.0, rel=0.12)
    steps = drifts("step", far, 100)
    assert set(np.abs(steps)) == {2.0}
    assert 0.3 < (steps > 0).mean() < 0.7
    assert (drifts("step", 0.0, 20) == 0).all()


def test_draws_do_not_depend_on_the_order_of_calls() -> None:
    model = LabModel(run_noise=1, boot_noise=1, build_noise=1, drift="walk", drift_size=1)
    one, other = (SyntheticLab(linear(50), model, {20: 2.0}, seed=3) for _ in range(2))
    first = [one.boot(c, 0, "t", f"b{c}").run(k, 100.0 * k) for c in range(5) for k in range(3)]
    again = [other.boot(c, 0, "t", f"b{c}").run(k, 100.0 * k) for c in reversed(range(5)) for k in (2, 1, 0)]
    assert sorted(first) == sorted(again)


def test_the_culprit_shifts_its_descendants_only() -> None:
    graph = branched(200, seed=5)
    culprit = next(i for i in range(20, 200) if graph.candidate[i] and len(graph.parents[i]) == 1)
    lab = SyntheticLab(graph, LabModel(), {culprit: 2.0}, seed=1)
    for commit in range(len(graph.shas)):
        assert lab.truth(commit) == pytest.approx(2.0 if ancestors(graph, commit)[culprit] else 0.0)


def test_commits_that_lack_good_are_offset_by_their_fork_point() -> None:
    graph = branched(300, seed=5)
    lab = SyntheticLab(graph, LabModel(fork_offset=1.0), {}, seed=1)
    lacking = [c for c in range(len(graph.shas)) if not ancestors(graph, c)[graph.good]]
    assert len({round(lab.truth(c), 9) for c in lacking}) > 1
    assert lab.truth(graph.bad) == 0.0


def test_same_binary_means_same_level_and_the_culprit_always_changes_it() -> None:
    lab = SyntheticLab(linear(300), LabModel(inert=0.6, background=3.0), {150: 2.0}, seed=1)
    assert lab.binary(150) != lab.binary(149)
    same = [c for c in range(1, 301) if lab.binary(c) == lab.binary(c - 1)]
    assert len(same) == pytest.approx(180, abs=30)
    assert all(lab.truth(c) == lab.truth(c - 1) for c in same)


def test_untestable_share_and_broken_stretch_spare_the_ends() -> None:
    lab = SyntheticLab(linear(1000), LabModel(untestable=0.3), {500: 2.0}, seed=1)
    assert len(lab.untestable) == pytest.approx(300, abs=50)
    assert {"build", "boot"} == set(lab.untestable.values())
    for seed in range(20):
        lab = SyntheticLab(linear(12), LabModel(broken=10), {6: 2.0}, seed=seed)
        assert 6 in lab.untestable
        assert 0 not in lab.untestable
        assert 12 not in lab.untestable


def test_real_samples_are_resampled_around_the_level() -> None:
    lab = SyntheticLab(linear(1), LabModel(samples=((9.0, 10.0), (11.0, 10.0))), {1: 10.0}, seed=1)
    values = {round(lab.boot(0, 0, "t", str(b)).run(k, 0.0), 6) for b in range(20) for k in range(4)}
    assert values == {90.0, 100.0, 110.0}
    values = {round(lab.boot(1, 0, "t", str(b)).run(k, 0.0), 6) for b in range(20) for k in range(4)}
    assert values == {100.0, 110.0, 120.0}


@pytest.mark.parametrize(
    "wrong",
    [
        {"run_noise": -1},
        {"run_noise": float("nan")},
        {"untestable": 1.5},
        {"run_seconds": -1},
        {"noise": "pink"},
    ],
)
def test_impossible_worlds_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as error:
        LabModel(**wrong)
    assert error.value.cure


def test_a_testbed_that_differs_scatters_by_its_own_factor_and_shows_its_own_effect() -> None:
    traits = (TestbedTraits("other", noise=3.0, effect=0.5),)
    model = LabModel(run_noise=1.0, boot_noise=2.0, testbeds=traits)
    lab = SyntheticLab(linear(4), model, {2: 4.0}, 1)
    plain = SyntheticLab(linear(4), LabModel(run_noise=1.0, boot_noise=2.0), {2: 4.0}, 1)
    for commit in (1, 2):
        own, usual = lab.boot(commit, 0, "other", "key"), plain.boot(commit, 0, "other", "key")
        assert own.constant - lab.truth(commit, "other") == pytest.approx(
            3 * (usual.constant - plain.truth(commit))
        )
        runs = [[boot.run(k, 0.0) - boot.lab.value(boot.constant) for k in range(3)] for boot in (own, usual)]
        assert runs[0] == pytest.approx([3 * y for y in runs[1]])
    assert lab.truth(2, "other") == 2.0
    assert lab.truth(2, "usual") == lab.truth(2) == 4.0


def test_an_effect_that_some_boots_show_has_the_same_mean() -> None:
    traits = (TestbedTraits("some", shown=0.25),)
    lab = SyntheticLab(linear(4), LabModel(run_noise=1.0, testbeds=traits), {2: 2.0}, 1)
    levels = [lab.boot(3, 0, "some", f"boot {k}").constant for k in range(400)]
    assert set(levels) == {0.0, 8.0}
    assert np.mean(levels) == pytest.approx(lab.truth(3, "some"), abs=0.5)
    assert {lab.boot(1, 0, "some", f"boot {k}").constant for k in range(20)} == {0.0}, "before the culprit"
    assert {lab.boot(3, 0, "other", f"boot {k}").constant for k in range(20)} == {2.0}
