"""What every form of a report says of an ending, a finding, a rest; word for word: tests/golden."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisector.model.decisions import Conclusion, Ending, Finding, Interval
from bisector.model.goal import Metric, Threshold
from bisector.model.records import Discarded, Marked, Ran, Record
from bisector.model.stored_bisection import Action
from bisector.report import statements, text
from bisector.report.kernel_differences import Differences
from bisector.report.report_model import Material
from tests.support.report_material import demo

FOUND = demo()
CHANGE = Interval(0.1, 0.11, 0.12)


def finding(commit: int, **more: object) -> Finding:
    return replace(Finding((commit,), CHANGE, 0.98, (commit - 1,), certified=True), **more)  # type: ignore[arg-type]


PROVEN, ANOTHER = finding(3), finding(4)
GAIN, GUESSED_GAIN = finding(2, opposite=True), finding(2, opposite=True, certified=False)


@pytest.mark.parametrize(
    ("ending", "findings", "said"),
    [
        (Ending.CULPRIT, (PROVEN,), "CULPRIT PROVEN"),
        (Ending.CULPRIT, (PROVEN, GUESSED_GAIN), "CULPRIT PROVEN"),
        (Ending.CULPRITS, (PROVEN, ANOTHER, GAIN), "SEVERAL CULPRITS, AND A GAIN"),
        (Ending.CULPRITS, (PROVEN, finding(4, certified=False), GAIN), "CULPRIT PROVEN, AND A GAIN"),
        (Ending.INCONCLUSIVE, (), "INCONCLUSIVE"),
        (Ending.INCONCLUSIVE, (GAIN,), "INCONCLUSIVE"),
        (Ending.INCONCLUSIVE, (PROVEN,), "INCONCLUSIVE, 1 CULPRIT PROVEN"),
        (Ending.INCONCLUSIVE, (PROVEN, ANOTHER, GAIN), "INCONCLUSIVE, 2 CULPRITS PROVEN"),
        (Ending.INCONCLUSIVE, (finding(3, certified=False),), "INCONCLUSIVE"),
        (Ending.SPREAD, (PROVEN,), "SPREAD OVER MANY COMMITS"),
    ],
)
def test_the_headline_counts_what_is_proven(ending: Ending, findings: tuple[Finding, ...], said: str) -> None:
    assert statements.result(FOUND, Conclusion(ending, "", findings)) == said


@pytest.mark.parametrize(
    ("status", "action", "said"),
    [
        ("failed", Action("failed", "perfbisect", "no room.", 0.0), "It failed, {}: no room. {}"),
        (
            "cancelled",
            Action("cancelled", "ann", "wrong range", 0.0),
            "It was cancelled by ann, {}: wrong range.",
        ),
        ("paused", Action("paused", "ann", "", 0.0), "It was paused by ann, {}."),
        ("failed", Action("given priority 5", "ann", "", 0.0), ""),  # by an earlier version
        ("running", Action("resumed", "ann", "", 0.0), ""),
        ("cancelled", None, ""),
    ],
)
def test_why_a_search_rests_is_told(status: str, action: Action | None, said: str) -> None:
    """Whoever got the mail about a failure knew no more than that."""
    rests = replace(FOUND, status=status, conclusion=None, action=action)
    when, on = "1970-01-01 00:00 UTC", f"'perfbisect resume {FOUND.id}' goes on with it."
    words = said.format(when, on)
    assert statements.why_it_rests(rests) == words
    assert statements.why_it_rests(replace(FOUND, action=action)) == "", "it has ended"
    assert words in " ".join(text.short(rests).split())


@pytest.mark.parametrize(
    ("more", "note"),
    [
        ({}, None),
        ({"opposite": True}, "a gain, no culprit"),
        ({"opposite": True, "small": True}, None),
        ({"small": True}, None),
    ],
)
def test_only_a_gain_of_some_size_is_said_to_be_no_culprit(more: dict[str, object], note: str | None) -> None:
    rows = statements.finding_rows(FOUND, finding(3, **more))
    assert rows.get("note") == note
    assert ("parent -> culprit)" in rows["real"]) is (not more)


def test_a_proof_is_told_with_the_chance_of_its_being_wrong() -> None:
    rows = statements.finding_rows(FOUND, finding(3, probability=0.9))
    assert rows["proof"].endswith("2 fresh boots, alpha 0.02") and "confidence" not in rows
    assert statements.finding_rows(FOUND, finding(3))["confidence"] == "98.0%"


@pytest.mark.parametrize(
    ("name", "processor", "goal", "said"),
    [
        ("real", "", False, False),
        ("real", "an i7", False, False),  # measured, beside what is modelled
        ("real", "an i7", True, True),
        ("branch-misses", "an i7", False, True),
    ],
)
def test_a_number_of_a_model_is_not_said_to_be_measured(
    name: str, processor: str, goal: bool, said: bool
) -> None:
    asked = replace(FOUND.goal, metric=Metric(name, "s", "lower", Threshold(0.05)), modelled=goal)
    rows = statements.finding_rows(replace(FOUND, goal=asked, modelled=processor), PROVEN)
    assert rows.get("modelled") == (f"not measured: {processor}" if said else None)


def test_a_metric_that_is_called_as_a_row_takes_no_rows_place() -> None:
    named = replace(FOUND.goal, metric=Metric("proof", "s", "lower", Threshold(0.05)))
    records: list[tuple[int, Record]] = [
        (n, replace(one, values={"proof": one.values["real"]}) if isinstance(one, Ran) else one)
        for n, one in FOUND.records
    ]
    rows = statements.finding_rows(replace(FOUND, goal=named, records=records), PROVEN)
    assert " s  (mean, parent -> culprit)" in rows["metric proof"]
    assert rows["proof"].startswith("compared afresh")


@pytest.mark.parametrize(
    ("low", "high", "is_all"),
    [
        (-0.01, 0.01, True),
        (0.001, 0.02, False),
        (-0.02, -0.001, False),
        (0.0, 0.01, True),
        (-0.01, 0.0, True),
    ],
)
def test_a_rest_beside_zero_is_a_part_that_is_not_explained(low: float, high: float, is_all: bool) -> None:
    end = Conclusion(Ending.CULPRIT, "", (PROVEN,), CHANGE, Interval(low, (low + high) / 2, high))
    said = statements.explained(FOUND, end)
    assert said.startswith("What was found explains" if is_all else "Part of the change")
    assert statements.explained(FOUND, replace(end, findings=())) == ""
    assert statements.explained(FOUND, replace(end, rest=None)) == ""


def test_the_rest_counts_where_parts_are_said_not_to_add_up() -> None:
    end = Conclusion(Ending.CULPRITS, "", (PROVEN, ANOTHER), rest=Interval(0.0, 0.1, 0.2))
    for total, adds_up in ((0.32, True), (0.322, False), (0.22, False)):
        said = statements.explained(FOUND, replace(end, total=Interval(total, total, total)))
        assert ("they multiply" not in said) is adds_up, total


def test_what_is_not_proven_is_a_part_only_where_no_rest_is_stated() -> None:
    guess = finding(4, certified=False)
    end = Conclusion(Ending.INCONCLUSIVE, "", (PROVEN, guess))
    assert statements.counted_parts(end) == [PROVEN, guess]
    assert statements.counted_parts(replace(end, rest=CHANGE)) == [PROVEN]


@pytest.mark.parametrize(("alike", "lines"), [(3, 3), (4, 1)])
def test_commits_that_failed_alike_are_named_as_long_as_they_are_few(alike: int, lines: int) -> None:
    class Stub:
        untestable = dict.fromkeys(range(alike), "it does not boot")

    class Bare(Material):
        state = Stub()  # type: ignore[assignment]

    bare = Bare(**{name: getattr(FOUND, name) for name in FOUND.__dataclass_fields__})
    assert len(statements.untestable(bare)) == lines


def test_the_words_of_a_user_are_kept_as_they_were_said() -> None:
    said: list[tuple[int, Record]] = [
        (1, Marked(3, "bad", "seen by hand")),
        (2, Marked(2, "good")),
        (3, Discarded("boot", "b3", "rebooted")),
    ]
    assert statements.words_of_user(replace(FOUND, records=said)) == [
        '444444444444 ("x86: Allow to enable RT") is bad (seen by hand)',
        '333333333333 ("signal: Add proper comment about preempt-disable") is good',
        "discarded the data of boot b3 (rebooted)",
    ]


def test_what_is_the_same_in_both_kernels_is_named_once() -> None:
    same = Differences(known=True, preemption=("none", "none"))
    assert statements.unchanged(same)[1] == "Preemption model: none."
    other = replace(same, preemption=("none", "full"), options=(("HZ", "100", "250"),))
    assert statements.unchanged(other)[1] == "Preemption model: none -> full."
    assert "effective .config" not in statements.unchanged(other)[0]
