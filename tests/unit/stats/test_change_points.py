"""The detector of nightly series: what moved is found and placed, what did not move is left in peace."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisector.model.dag import Floats
from bisector.stats.change_points import SUSPECT_SCORE, NightLevels, Status, Verdict, assess, scan
from bisector.stats.night_contrasts import MAX_AFTER, MAX_SCORE, MIN_BEFORE, MIN_SCALE_NIGHTS

COUNT, AT = 70, 60


def series(
    count: int = COUNT,
    step: float = 0.0,
    reference: Callable[[Floats], Floats] | None = None,
    seed: int = 1,
    at: int = AT,
) -> list[NightLevels]:
    """Return nights of four boots, whose mean has a standard deviation of one; reference: of the step."""
    random = np.random.default_rng(seed)
    moved = np.where(np.arange(count) >= at, step, 0.0)
    own = 0.87 * random.standard_normal(count) + moved
    boots = own[:, None] + random.standard_normal((count, 4))
    beside = random.standard_normal((count, 1)) + (0.0 if reference is None else reference(moved)[:, None])
    return [NightLevels(tuple(b), tuple(r)) for b, r in zip(boots.tolist(), beside.tolist(), strict=True)]


def first(verdicts: tuple[Verdict, ...], status: Status = "suspect", since: int = AT) -> int:
    """Return the first night of this status, counted from `since`; -1 without any."""
    return next((i for i, v in enumerate(verdicts[since:]) if v.status == status), -1)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_large_step_is_suspect_in_the_second_night_and_placed(sign: int) -> None:
    verdicts = scan(series(step=8.0 * sign))
    assert verdicts[AT].status == "steady", "one night alone is never suspect"
    verdict = verdicts[AT + 1]
    assert verdict.status == "suspect" and verdict.change is not None
    change = verdict.change
    assert change.last_good < AT <= change.first_bad <= AT + 1
    assert change.effect.low < 8.0 * sign < change.effect.high
    assert change.score * sign >= SUSPECT_SCORE


def test_nights_of_one_standard_deviation_are_worth_it() -> None:
    worth = [scan(series(200, seed=seed))[-1].night_sd or 0.0 for seed in range(20)]
    assert 0.9 < float(np.mean(worth)) < 1.25


def test_one_night_never_suffices() -> None:
    assert MAX_SCORE < SUSPECT_SCORE
    nights = series()
    for size in (10.0, 1e6):
        lone = [*nights[:AT], NightLevels(tuple(b + size for b in nights[AT].boots)), *nights[AT + 1 :]]
        assert first(scan(lone)) == first(scan(nights)) == -1


def test_the_scatter_of_the_boots_bounds_what_a_night_is_worth() -> None:
    """Nights that agree by chance do not make tonight's boots better than they are."""
    wide = [NightLevels((-3.0, -1.0, 1.0, 3.0)) for _ in range(30)]
    assert (scan(wide)[-1].night_sd or 0.0) > 1.0
    assert scan([*wide, *[NightLevels((-2.0, 0.0, 2.0, 4.0))] * 2])[-1].status == "steady"
    exact = [NightLevels((0.0, 0.0, 0.0, 0.0)) for _ in range(30)]
    assert scan([*exact, *[NightLevels((1.0, 1.0, 1.0, 1.0))] * 2])[-1].status == "suspect"


def test_the_reference_moved_too_is_a_suspect_testbed_never_an_alert() -> None:
    verdicts = scan(series(step=6.0, reference=lambda moved: moved))
    assert first(verdicts, "testbed suspect") >= 0
    assert first(verdicts) == -1
    change = verdicts[AT + first(verdicts, "testbed suspect")].change
    assert change is not None and change.reference is not None
    assert change.reference.low < 6.0 < change.reference.high


def test_a_reference_that_moved_less_or_the_other_way_excuses_nothing() -> None:
    assert first(scan(series(step=12.0, reference=lambda moved: 0.2 * moved))) in (1, 2)
    assert first(scan(series(step=12.0, reference=lambda moved: -moved))) in (1, 2)


def test_without_a_reference_a_change_is_suspect() -> None:
    nights = [NightLevels(n.boots) for n in series(step=6.0)]
    verdict = scan(nights)[AT + 3]
    assert verdict.status == "suspect" and verdict.change is not None and verdict.change.reference is None


def test_a_change_that_does_not_matter_is_no_suspect() -> None:
    assert first(scan(series(step=6.0), least=20.0)) == -1
    assert first(scan(series(step=6.0), least=3.0)) >= 0


def test_a_settled_change_is_the_new_level() -> None:
    nights = series(step=6.0)
    assert scan(nights)[-1].status == "suspect"
    after = scan(nights, settled=[AT])
    assert all(v.status in ("steady", "learning") for v in after[AT:])
    assert [v.status for v in after[AT : AT + MIN_BEFORE]] == ["learning"] * MIN_BEFORE


def test_a_change_in_a_young_segment_lies_behind_its_first_night() -> None:
    """A rejected suspect shortly before a step must not make a night after the step the last good one."""
    nights = series(90, step=8.0)
    verdicts = scan(nights, settled=[AT - 3])
    found = verdicts[AT + first(verdicts)].change
    assert found is not None and found.last_good < AT


@pytest.mark.parametrize("late", [21, 30])
def test_a_change_that_is_older_than_all_windows_lies_behind_its_last_good_night(late: int) -> None:
    change = assess(series(100 + late, step=4.0, at=100)).change
    assert change is not None and change.last_good < 100


def test_a_change_is_not_sought_before_its_segment() -> None:
    settled = 90
    change = assess(series(125, step=4.0, at=100), settled=[settled]).change
    assert change is not None and settled <= change.last_good < 100


def test_nights_that_were_not_measured_change_nothing() -> None:
    nights = series(step=5.0)
    holes = [x for i, n in enumerate(nights) for x in ((NightLevels(()), n) if i % 3 == 0 else (n,))]
    dense, sparse = scan(nights), scan(holes)
    measured = [v for n, v in zip(holes, sparse, strict=True) if n.boots]
    assert [(v.status, v.night_sd) for v in measured] == [(v.status, v.night_sd) for v in dense]
    assert all(v.status == "unmeasured" for n, v in zip(holes, sparse, strict=True) if not n.boots)
    change = next(v.change for v in reversed(sparse) if v.change)
    assert holes[change.last_good].boots and holes[change.first_bad].boots


def test_the_first_nights_are_learnt_from() -> None:
    verdicts = scan(series())
    assert {v.status for v in verdicts[: MIN_BEFORE + MIN_SCALE_NIGHTS]} == {"learning"}
    assert verdicts[MIN_BEFORE + MIN_SCALE_NIGHTS + 1].status != "learning"
    assert assess([]) == Verdict("unmeasured")


def test_noise_that_grows_threefold_is_noticed_in_a_fortnight() -> None:
    nights = series(140)
    loud = [NightLevels(tuple(3 * b for b in n.boots)) if i >= 100 else n for i, n in enumerate(nights)]
    assert (scan(loud)[115].night_sd or 0.0) > 1.5 * (scan(nights)[115].night_sd or 9.0)


LEVEL = st.integers(-(2**20), 2**20).map(float)
"""Whole numbers: shifts and scales by powers of two are then exact."""
NIGHT = st.builds(
    NightLevels,
    st.lists(LEVEL, min_size=0, max_size=4).map(tuple),
    st.lists(LEVEL, min_size=0, max_size=2).map(tuple),
)
SERIES = st.one_of(
    st.lists(NIGHT, max_size=50),
    st.builds(
        lambda seed, step: [
            NightLevels(
                tuple(np.round(1024 * np.array(n.boots))), tuple(np.round(1024 * np.array(n.reference)))
            )
            for n in series(50, step=step, seed=seed, at=35)
        ],
        st.integers(0, 10**6),
        st.sampled_from([0.0, 2.0, 5.0]),
    ),
)
quick = settings(max_examples=40, deadline=None)


def flat(verdict: Verdict, shift: float = 0.0, scale: float = 1.0) -> Any:
    """Return a verdict in comparable form, with its lengths scaled."""
    c = verdict.change
    lengths = [verdict.night_sd or 0.0]
    if c is not None:
        for interval in (c.effect, c.reference):
            lengths += [] if interval is None else [interval.low, interval.estimate, interval.high]
    return verdict.status, c and (c.last_good, c.first_bad), [x * scale for x in lengths]


@quick
@given(SERIES, st.integers(-1000, 1000), st.integers(-8, 8))
def test_a_shift_changes_nothing_and_a_scale_only_the_unit(
    nights: list[NightLevels], add: int, power: int
) -> None:
    factor = 2.0**power

    def moved(values: tuple[float, ...]) -> tuple[float, ...]:
        return tuple((v + 8 * add) * factor for v in values)

    changed = [NightLevels(moved(n.boots), moved(n.reference)) for n in nights]
    for a, b in zip(scan(nights, least=64.0), scan(changed, least=64.0 * factor), strict=True):
        one, other = flat(a, scale=factor), flat(b)
        assert one[:2] == other[:2]
        assert one[2] == pytest.approx(other[2], rel=1e-6, abs=1e-6 * factor)


@quick
@given(SERIES, st.randoms(use_true_random=False))
def test_the_order_of_the_boots_of_a_night_does_not_matter(nights: list[NightLevels], random: Any) -> None:
    shuffled = [
        NightLevels(
            tuple(random.sample(n.boots, len(n.boots))), tuple(random.sample(n.reference, len(n.reference)))
        )
        for n in nights
    ]
    for a, b in zip(scan(nights), scan(shuffled), strict=True):
        assert flat(a)[:2] == flat(b)[:2]
        assert flat(a)[2] == pytest.approx(flat(b)[2])


@quick
@given(SERIES, st.integers(0, 50), st.lists(st.integers(0, 50), max_size=3))
def test_no_night_is_judged_by_later_ones(nights: list[NightLevels], cut: int, settled: list[int]) -> None:
    known = nights[:cut]
    before = [s for s in settled if s <= len(known)]
    assert list(scan(nights, before)[: len(known)]) == list(scan(known, before))
    assert assess(known, before) == (scan(known, before)[-1] if known else Verdict("unmeasured"))


@quick
@given(
    st.lists(
        st.builds(
            NightLevels,
            st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3).map(tuple),
            st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=1).map(tuple),
        ),
        max_size=40,
    ),
    st.lists(st.integers(0, 60), max_size=3),
)
def test_any_finite_levels_are_judged(nights: list[NightLevels], settled: list[int]) -> None:
    assert len(scan(nights, settled)) == len(nights)


def test_five_thousand_nights_take_seconds_not_minutes() -> None:
    nights = series(5000)
    begun = time.process_time()
    assert len(scan(nights)) == 5000
    assert time.process_time() - begun < 60, "a guard against quadratic time; 2 s were measured"


def test_the_last_nights_are_those_that_are_compared() -> None:
    change = scan(series(COUNT, step=3.0))[-1].change
    assert change is not None and change.last_good >= COUNT - 1 - MAX_AFTER
