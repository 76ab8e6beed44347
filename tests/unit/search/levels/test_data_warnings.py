"""What a conclusion warns of."""

import math
from dataclasses import replace

import pytest

from bisector.model.goal import TestbedClock
from bisector.model.records import Booted, Left, Ran, Record, RunFailed
from bisector.search.design_matrix import NoiseHypothesis
from bisector.search.levels.data_warnings import (
    BACKGROUND_WARNING,
    BINARY_SPREAD_WARNING,
    DRIFT_WARNING,
    warnings,
)
from bisector.search.seeds.copied_boots import MAX_EXACT_RUN_SD
from tests.support.searching import Seen, context_of, goal, linear


def test_flagged_runs_are_counted_in_a_warning() -> None:
    boot = Booted("x", 0, "t", True, 5.0, 0.0)
    runs = [Ran("x", k, {"real": 100.0}, 1.0, 0.0, ("stall",) if k else ()) for k in range(3)]
    context, _ = context_of(linear(4), records=[boot, *runs])
    assert "2 runs were flagged as suspicious and do not count." in warnings(context, None)


@pytest.mark.parametrize("good", [0.0, 3.0])
def test_percentages_of_a_level_of_zero_are_said_to_be_of_one(good: float) -> None:
    ends = [Seen(c, (12.0, 0.0, 12.0) if c else (good, 0.0, good)) for c in (0, 4)]
    context, _ = context_of(linear(4), ends)
    told = "Good reads 0, of which there are no percentages: each percentage here is of 1 s."
    assert (told in warnings(context, None)) == (good == 0.0)


def test_boots_whose_workload_failed_and_was_tried_once_more_are_counted_for_each_end() -> None:
    records: list[Record] = []
    for number, commit in enumerate((0, 4, 4, 2, 0)):
        boot = f"b{number}"
        records += [
            Booted(boot, commit, "t", True, 5.0, 0.0),
            Ran(boot, 0, {"real": 100.0}, 1.0, 0.0),
            Left(boot, failure="the workload did not end within 150 s" if number in (1, 3) else ""),
        ]
    context, _ = context_of(linear(4), records=records)
    (warned,) = [text for text in warnings(context, None) if text.startswith("The workload failed")]
    assert warned.startswith(
        "The workload failed in 1 of 2 boots of bad, in 0 of 2 boots of good, in 1 of 1 boot of other "
        "commits, and was tried once more (the workload did not end within 150 s): "
    )
    context, _ = context_of(linear(4), records=[*records[:2], RunFailed("b0", "no metric")])
    assert not any(text.startswith("The workload failed") for text in warnings(context, None))


@pytest.mark.parametrize(
    ("kind", "bound", "words"),
    [
        ("drift", DRIFT_WARNING, "A testbed drifted"),
        ("binary", BINARY_SPREAD_WARNING, "Builds differ beyond what their commits explain"),
        ("background", BACKGROUND_WARNING, "Levels wander along history"),
    ],
)
def test_noise_that_is_large_beside_the_effect_is_warned_of(kind: str, bound: float, words: str) -> None:
    ends = [Seen(c, (121.0, 121.1, 120.9) if c else (100.0, 100.1, 99.9)) for c in (0, 16) * 3]
    context, cache = context_of(linear(16), ends)
    posterior = cache.posterior(context, (), math.log(1.21))
    for share, warned in ((0.9 * bound, False), (1.1 * bound, True)):
        noise = NoiseHypothesis(**{"boot": 0.0, kind: share * posterior.design.effect})
        noises = (noise,) * len(posterior.fits.noises)
        noisy = replace(posterior, fits=replace(posterior.fits, noises=noises))
        assert any(text.startswith(words) for text in warnings(context, noisy)) is warned


ENDS = [(0, 1), (4, -1)]


@pytest.mark.parametrize(
    ("clock", "fresh", "share", "warned"),
    [
        ("instructions", False, 1.1, True),
        ("instructions", False, 0.9, False),
        ("instructions", True, 1.1, False),
        ("wall", False, 1.1, False),
    ],
)
def test_runs_that_differ_under_an_exact_clock_are_warned_of(
    clock: TestbedClock, fresh: bool, share: float, warned: bool
) -> None:
    wanted = replace(goal(clock=clock), fresh_seeds=fresh)
    size = 100 * share * MAX_EXACT_RUN_SD * wanted.metric.threshold.value * math.sqrt(3 / 4)
    # What all boots share by repetition is no scatter, so the commits differ in it.
    visits = [
        Seen(c, tuple(100 + sign * size * x for x in (1.0, -1.0, 1.0, -1.0)), fresh_seed=k >= len(ENDS))
        for k, (c, sign) in enumerate(ENDS * 2)
    ]
    context, _ = context_of(linear(4), visits, wanted=wanted)
    assert any(text.startswith("Runs of one boot differ") for text in warnings(context, None)) is warned
