"""The time that a search still takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.app.time_left import ExpectedWork, TimeLeft, WorkCounts
from bisector.engine.events import Event, EventKind
from bisector.model.decisions import Purpose

BETWEEN = 0.25 * (1 + 1.4 + 1.4**2 + 1.4**3)
"""Four builds between the ends, as a share of one of an end."""

WORK: dict[Purpose, WorkCounts] = {
    "verify": WorkCounts(2, 2, 4),
    "search": WorkCounts(4, 4, 4),
    "certify": WorkCounts(0, 4, 8),
    "attribute": WorkCounts(),
}


def fresh(build: float = 100.0, boot: float = 2.0, run: float = 1.0) -> TimeLeft:
    return TimeLeft(ExpectedWork(WORK, build, boot, run), 0.0)


def decide(purpose: Purpose, commit: int, *, new_boot: bool = True) -> Event:
    return Event("decision", "", commit, purpose=purpose, new_boot=new_boot)


def done(kind: EventKind, commit: int = 0, seconds: float = 1.0) -> Event:
    return Event(kind, "", commit, seconds=seconds)


def test_all_that_is_expected_is_left_at_first() -> None:
    # Two builds of ends, four between them; 10 boots of 2 s and 16 runs of 1 s, 1.5 times.
    assert fresh().seconds(0.0) == pytest.approx(2 * 100 + 100 * BETWEEN + 1.5 * (10 * 2 + 16))


def test_the_build_that_runs_gets_shorter_and_is_never_done() -> None:
    left = fresh()
    left.take(decide("verify", 0), 0.0)
    whole = left.seconds(0.0)
    assert left.seconds(30.0) == pytest.approx(whole - 30)
    # It takes longer than expected: so will the others.
    assert left.seconds(200.0) > whole


def test_the_files_that_are_compiled_tell_how_long_builds_take() -> None:
    left = fresh()
    left.take(decide("verify", 0), 0.0)
    left.take(Event("note", "", 0, share=0.01), 10.0)  # still configuring
    assert left.seconds(10.0) == pytest.approx(fresh().seconds(0.0) - 10)
    left.take(Event("note", "", 0, share=0.5), 20.0)
    # 40 s: half of this one, another end, four between them.
    assert left.seconds(20.0) == pytest.approx(20 + 40 + 40 * BETWEEN + 1.5 * (10 * 2 + 16))


def test_builds_between_the_ends_get_smaller_and_are_expected_as_those_before() -> None:
    left = fresh()
    left.take(decide("verify", 0), 0.0)
    left.take(done("build", 0), 50.0)
    assert left.seconds(50.0) == pytest.approx(50 + 50 * BETWEEN + 1.5 * (10 * 2 + 16))
    left.take(decide("search", 5), 50.0)
    boots = 1.5 * (8 * 2 + 12)
    assert left.seconds(50.0) == pytest.approx(50 * BETWEEN + boots)
    first = 0.25 * 1.4**3
    now = 50 + 50 * first
    left.take(done("build", 5), now)  # as expected
    assert left.seconds(now) == pytest.approx(50 * (BETWEEN - first) + boots)
    left.take(decide("search", 3), now)
    left.take(done("build", 3), now)  # no time at all
    assert left.seconds(now) - boots < 50 * 0.25 * (1 + 1.4)


def test_a_commit_that_is_built_is_not_waited_for_again() -> None:
    left = fresh()
    left.take(decide("verify", 0), 0.0)
    left.take(done("build", 0), 100.0)
    left.take(decide("certify", 0), 100.0)
    assert left.seconds(100.0) == pytest.approx(1.5 * (4 * 2 + 8))


def test_the_pace_is_learnt_from_the_time_that_really_went_by() -> None:
    left = fresh(boot=1.0)
    left.take(decide("verify", 0), 0.0)
    left.take(done("build", 0), 0.0)
    now = 0.0
    for _ in range(30):
        for event in (done("boot"), done("warmup"), done("run")):
            now += 2.0
            left.take(event, now)
    left.take(decide("certify", 0), now)
    # Six seconds for a boot and a run that took one each by themselves: a factor of three.
    assert left.seconds(now) == pytest.approx(3 * (4 + 8), rel=0.05)


def test_trouble_is_no_pace() -> None:
    left, undisturbed = fresh(), fresh()
    for one in (left, undisturbed):
        one.take(decide("verify", 0), 0.0)
    left.take(Event("trouble", "the connection was lost; trying again"), 1000.0)
    assert left.seconds(1000.0) == undisturbed.seconds(0.0)


KINDS: list[EventKind] = ["decision", "build", "boot", "warmup", "run", "trouble"]


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.floats(0, 1e5))))
def test_something_is_always_left(happened: list[tuple[EventKind, float]]) -> None:
    left, now = fresh(), 0.0
    for kind, seconds in happened:
        now += seconds
        event = decide("search", 3) if kind == "decision" else done(kind, 3, seconds)
        left.take(event, now)
        assert left.seconds(now + seconds) > 0
