"""Extending a state is folding it anew, record by record."""

from hypothesis import given, settings
from hypothesis import strategies as st

from bisector.model.records import (
    Booted,
    Built,
    Discarded,
    Goal,
    Left,
    Marked,
    Metric,
    Ran,
    Record,
    RunFailed,
    Threshold,
)
from bisector.model.state import extend, fold
from bisector.simulation.histories import linear

GOAL = Goal(Metric("m", "s", "lower", Threshold(0.05)))
GRAPH = linear(5)
KINDS = ("build", "boot", "run", "run", "run", "fail", "left", "mark", "discard")


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    records: list[Record] = []
    boots: list[str] = []
    for n in range(draw(st.integers(0, 40))):
        kind = draw(
            st.sampled_from(["build", "boot", "run", "run", "run", "fail", "left", "mark", "discard"])
        )
        commit = draw(st.integers(0, 5))
        if kind == "build":
            records.append(Built(commit, draw(st.booleans()), 1.0, f"b{commit}", draw(st.integers(0, 1))))
        elif kind == "boot":
            ok = draw(st.booleans())
            records.append(Booted(f"boot{n}", commit, draw(st.sampled_from("ab")), ok, 1.0, float(n)))
            boots += [f"boot{n}"] if ok else []
        elif kind == "mark":
            records.append(Marked(commit, draw(st.sampled_from(("good", "bad", "skip"))), "why"))
        elif kind == "discard" and draw(st.integers(0, 9)) == 0:
            records.append(Discarded("testbed", "a"))
        elif boots:
            boot = draw(st.sampled_from(boots))
            if kind == "run":
                flags = draw(st.sampled_from(((), ("warn",))))
                values = {draw(st.sampled_from("mn")): draw(st.floats(0, 9))}
                records.append(Ran(boot, n, values, 1.0, float(n), flags, draw(st.booleans())))
            elif kind == "fail":
                records.append(RunFailed(boot, "crash"))
            elif kind == "left":
                records.append(Left(boot))
    return records


@settings(max_examples=200, deadline=None)
@given(histories(), st.integers(1, 7))
def test_extend_equals_fold(records: list[Record], step: int) -> None:
    state = fold(GRAPH, GOAL, ())
    for i in range(0, len(records), step):
        state = extend(state, records[i : i + step], idle="a")
    assert state == fold(GRAPH, GOAL, records, idle="a" if records else None)
