"""Which boots have not ended, told once: the state that the planner sees agrees with it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bisector.model.decisions import Measure
from bisector.model.live_boots import live_after, live_boots
from bisector.model.records import Booted, Discarded, Left, Ran, Record, RunFailed
from bisector.model.state import fold
from tests.support import fake_bisection as fake

BOOTED = Booted("b1", 3, "a", True, 1.0, 1.0)


def test_what_begins_a_boot_and_what_ends_it() -> None:
    live = live_after({}, BOOTED)
    assert live == {"b1": "a"}
    for event in (
        replace(BOOTED, boot="b2", ok=False, failure="panic"),
        Ran("b1", 0, {"m": 1.0}, 1.0, 1.0),
        Discarded("boot", "b1"),
        Left("another"),
        Measure(3, 1, "search", "why", boot="b1"),
    ):
        assert live_after(live, event) is live, event
    for end in (Left("b1"), Left("b1", lost=True), RunFailed("b1", "no metric")):
        assert live_after(live, end) == {}


events = st.lists(
    st.one_of(
        st.builds(Left, st.sampled_from(["b0", "b1", "b2"]), lost=st.booleans()),
        st.builds(RunFailed, st.sampled_from(["b0", "b1", "b2"]), st.just("no metric")),
        st.builds(Discarded, st.just("testbed"), st.sampled_from("ab")),
    ),
    max_size=5,
)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans(), events), max_size=3))
def test_the_state_agrees(boots: list[tuple[str, bool, list[Record]]]) -> None:
    records: list[Record] = []
    for number, (testbed, ok, later) in enumerate(boots):
        records += [replace(BOOTED, boot=f"b{number}", testbed=testbed, ok=ok), *later]
    lab = fake.a_lab()
    state = fold(lab.graph, fake.accepted(lab).the_goal(), records)
    assert live_boots(records) == {v.boot: v.testbed for v in state.boots if v.live}
