"""Events: what is done, why, where and for how long, with the totals so far."""

from __future__ import annotations

import pytest

from bisector.engine.events import Event, EventKind, EventSender
from bisector.model.decisions import Measure
from bisector.model.goal import Metric, Threshold
from bisector.model.records import Ran
from bisector.model.state import Costs


@pytest.fixture
def heard() -> list[Event]:
    return []


@pytest.fixture
def sender(heard: list[Event]) -> EventSender:
    return EventSender(heard.append, lambda: Costs(builds=(20.0,), boots=(5.0, 5.0), runs=(1.0, 1.0, 1.0)))


def test_an_event_says_what_was_measured_where_and_the_totals(
    sender: EventSender, heard: list[Event]
) -> None:
    sender.send("boot", "booted", 7, "amd", seconds=1.5)
    assert heard == [Event("boot", "booted", 7, testbed="amd", seconds=1.5, runs=3, boots=2, builds=1)]


@pytest.mark.parametrize(
    ("values", "flags", "warmup", "kind", "text", "value"),
    [
        ({"time": 2.5, "faults": 9.0}, (), False, "run", "run 3: time 2.5 s", 2.5),
        ({"time": 2.5}, (), True, "warmup", "warm-up 3: time 2.5 s", 2.5),
        ({"faults": 9.0}, (), False, "run", "run 3: no value", None),
        ({"time": 2.5}, ("hot", "slow"), False, "run", "run 3: time 2.5 s (not counted: hot, slow)", 2.5),
    ],
)
def test_a_run_is_told_by_the_deciding_metric_and_whether_it_counts(
    sender: EventSender,
    heard: list[Event],
    values: dict[str, float],
    flags: tuple[str, ...],
    warmup: bool,
    kind: EventKind,
    text: str,
    value: float | None,
) -> None:
    ran = Ran("b1", 3, values, 1.5, 0.0, flags=flags, warmup=warmup)
    sender.send_run(ran, Metric("time", "s", "lower", Threshold(0.05)), 7, "amd")
    wanted = Event(kind, text, 7, testbed="amd", seconds=1.5, value=value, runs=3, boots=2, builds=1)
    assert heard == [wanted]


@pytest.mark.parametrize(
    ("measure", "text"),
    [
        (Measure(7, 3, "search", "splits", left=60.0), "3 runs in a new boot"),
        (Measure(7, 1, "search", "splits", "b1", left=60.0), "1 run in the running boot"),
        (Measure(7, 2, "certify", "splits", layout=2, left=60.0), "2 runs in a new boot of code layout 2"),
        (
            Measure(7, 2, "certify", "splits", left=60.0, fresh_seed=True),
            "2 runs in a new boot with random numbers of its own",
        ),
    ],
)
def test_a_decision_is_told_with_its_reason_and_the_time_that_is_left(
    sender: EventSender, heard: list[Event], measure: Measure, text: str
) -> None:
    sender.send_decision(measure, "amd")
    assert (heard[0].kind, heard[0].text) == ("decision", text)
    assert (heard[0].commit, heard[0].reason, heard[0].testbed, heard[0].left) == (7, "splits", "amd", 60.0)


def test_what_an_adapter_is_doing_is_a_note_of_its_trial(sender: EventSender, heard: list[Event]) -> None:
    sender.progress(Measure(7, 1, "search", ""), "amd")("compiling")
    assert (heard[0].kind, heard[0].text, heard[0].commit, heard[0].testbed) == (
        "note",
        "compiling",
        7,
        "amd",
    )
