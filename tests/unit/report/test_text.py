"""How the text of a report names commits that could not be tested."""

import dataclasses
from typing import Any

import pytest

from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Conclusion, Ending, Finding, Interval
from bisector.model.goal import Find, Goal, Metric, Threshold
from bisector.model.records import Ran
from bisector.report import statements, text
from bisector.report.report_model import Material
from tests.support.report_material import demo, two_levels


def told(untestable: dict[int, str]) -> str:
    """Return the lines of the report's part on commits that could not be tested."""
    shas = tuple(f"{i:012x}{0:028x}" for i in range(60))
    graph = CommitGraph(shas, ((), *((i,) for i in range(59))), (False, *[True] * 59), 0, 59, (), untestable)
    goal = Goal(Metric("real", "s", "lower", Threshold(0.05)))
    lines = text.render(Material("b-1", 0.0, "done", {}, graph, goal, None, [], [])).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Commits that could not be tested"))
    return "\n".join(lines[start : lines.index("", start)])


def test_many_with_one_reason_are_one_line_behind_those_that_stand_alone() -> None:
    found = told({**dict.fromkeys(range(10, 50), "not a Linux tree"), 5: "does not compile"})
    assert found.splitlines()[0].endswith("(41)")
    assert found.index("does not compile") < found.index("40 commits, such as 00000000000a")
    assert found.count("not a Linux tree") == 1


def test_a_few_with_one_reason_are_named() -> None:
    found = told({5: "does not boot", 7: "does not boot"})
    assert "000000000005: does not boot" in found
    assert "000000000007: does not boot" in found


def test_more_reasons_than_fit_are_counted() -> None:
    found = told({i: f"error {i}" for i in range(1, 31)})
    assert "and 10 more lines, all of them in report.json" in found


def test_the_means_beside_an_effect_are_of_the_same_testbeds() -> None:
    """A mean over testbeds contradicts the effect, which weighs them by their noise."""
    found = " ".join(text.render(two_levels()).split())
    assert "fast 100.00 -> 105.00, slow 200.00 -> 210.00 s (mean, parent -> culprit)" in found
    assert "-600% of the way" not in found


@pytest.mark.parametrize("name", ["effect", "probability", "proof", "parent", "note"])
def test_a_metric_named_as_a_row_keeps_its_own(name: str) -> None:
    """Its levels stood in the row of that name, which then took their place."""
    material = two_levels()
    assert material.conclusion is not None
    (finding,) = material.conclusion.findings
    finding = dataclasses.replace(finding, probability=0.99, note="a note")
    metric = dataclasses.replace(material.goal.metric, name=name)
    records = [
        (i, dataclasses.replace(one, values={name: one.values["real"]}) if isinstance(one, Ran) else one)
        for i, one in material.records
    ]
    goal = dataclasses.replace(material.goal, metric=metric)
    plain = statements.finding_rows(material, finding)
    found = statements.finding_rows(dataclasses.replace(material, goal=goal, records=records), finding)
    assert name in plain
    assert next(iter(found)) == f"metric {name}"
    assert list(found.values()) == list(plain.values())


def test_nothing_is_explained_by_what_is_not_proven() -> None:
    whole = Interval(-0.01, 0.02, 0.05)
    suspect = Finding((3,), Interval(0.0, 0.02, 0.04), 0.5, note="not proven", probability=0.5)
    end = Conclusion(Ending.INCONCLUSIVE, "The budget is spent.", (suspect,), whole, whole)
    found = text.render(dataclasses.replace(demo(), conclusion=end))
    assert "good to bad  +2.0% slower" in found and "unexplained" not in found
    assert "explains the change" not in found and "is not explained by" not in found


@pytest.mark.parametrize(
    ("find", "opposite", "headline", "note"),
    [
        ("regression", (False, False), "SEVERAL CULPRITS", ""),
        ("regression", (False, True), "CULPRIT PROVEN, AND A GAIN", "a gain, no culprit"),
        ("regression", (True, True), "2 GAINS PROVEN, NO CULPRIT", "a gain, no culprit"),
        ("fix", (False, True), "FIX PROVEN, AND A LOSS", "a loss, no fix"),
    ],
)
def test_what_moved_the_metric_the_other_way_is_not_called_a_culprit(
    find: Find, opposite: tuple[bool, bool], headline: str, note: str
) -> None:
    """With --scan a search proves such changes, too; the one that made it faster was a culprit."""
    found = demo()
    parts = tuple(
        Finding((k,), Interval(0.1, 0.1, 0.1), 0.98, (k - 1,), certified=True, opposite=other, note="why")
        for k, other in zip((3, 4), opposite, strict=True)
    )
    ending = Ending.FIXES if find == "fix" else Ending.CULPRITS
    goal = dataclasses.replace(found.goal, find=find)
    material = dataclasses.replace(found, goal=goal, conclusion=Conclusion(ending, "Both.", parts))
    shown = text.render(material)
    assert f"Result: {headline}\n" in shown
    assert ("parent -> commit" in shown) is (f"{note}; why" in shown) is any(opposite)
    assert ("parent -> culprit" in shown or "parent -> fix" in shown) is not all(opposite)


def test_a_set_beside_a_gain_is_still_a_set() -> None:
    change = Interval(0.1, 0.1, 0.1)
    both = (
        Finding((1, 2), change, 0.98, certified=True),
        Finding((3,), change, 0.98, certified=True, opposite=True),
    )
    shown = text.render(dataclasses.replace(demo(), conclusion=Conclusion(Ending.CULPRIT_SET, "", both)))
    assert "Result: A SET OF COMMITS THAT CANNOT BE TOLD APART, AND A GAIN\n" in shown


@pytest.mark.parametrize(
    ("commit", "said"),
    [
        (4, "not certified: it was not compared afresh with its parent"),
        (3, "not certified: 1 fresh boot of it did not decide against its parent"),
    ],
)
def test_a_suspect_says_whether_its_proof_was_begun(commit: int, said: str) -> None:
    """'No fresh comparison held' told of one where none was made."""
    suspect = Finding((commit,), Interval(0.0, 0.02, 0.04), 0.5, note="not proven", probability=0.5)
    end = Conclusion(Ending.INCONCLUSIVE, "The budget is spent.", (suspect,))
    shown = text.render(dataclasses.replace(demo(), conclusion=end))
    assert said in " ".join(shown.split())


@pytest.mark.parametrize(
    ("certified", "probability", "doubt"),
    [(True, 0.49, True), (True, 0.5, False), (True, None, False), (False, 0.1, False)],
)
def test_a_proof_that_the_model_does_not_believe_says_so(
    certified: bool, probability: float | None, doubt: bool
) -> None:
    change = Interval(0.1, 0.1, 0.1)
    found = Finding((3,), change, 0.97, (2,), certified=certified, probability=probability)
    end = Conclusion(Ending.CULPRIT, "It is.", (found,))
    shown = " ".join(text.render(dataclasses.replace(demo(), conclusion=end)).split())
    assert ("but by all trials together it is less likely than not" in shown) is doubt


def test_relative_changes_of_several_commits_are_not_said_to_add_up() -> None:
    def told(*effects: float, total: float) -> str:
        parts = tuple(
            Finding((k + 1,), Interval(e, e, e), 0.98, parents=(k,), certified=True)
            for k, e in enumerate(effects)
        )
        rest, whole = Interval(-0.01, 0.0, 0.01), Interval(total, total, total)
        end = Conclusion(Ending.CULPRITS, "Proven.", parts, whole, rest)
        return " ".join(text.render(dataclasses.replace(demo(), conclusion=end)).split())

    multiply = "in percent of its parent's level: they multiply"
    assert multiply in told(0.5, 0.5, total=1.25)
    assert multiply not in told(0.02, 0.02, total=0.0404), "the same to the digit that is printed"
    assert multiply not in told(0.5, total=0.5)


def concluded(ending: Ending, *findings: Finding, **more: Any) -> str:
    """Return the report of a conclusion. more: its fields."""
    end = Conclusion(ending, "How it ended.", findings, **more)
    return text.render(dataclasses.replace(demo(), conclusion=end))


def test_two_sets_of_as_many_commits_are_both_in_what_adds_up() -> None:
    sets = [
        Finding(commits, Interval(e, e, e), 0.98, certified=True)
        for commits, e in (((1, 2), 0.05), ((3, 4), 0.03))
    ]
    whole, rest = Interval(0.08, 0.08, 0.08), Interval(-0.01, 0.0, 0.01)
    found = concluded(Ending.CULPRIT_SET, *sets, total=whole, rest=rest)
    added = found.partition("How it adds up")[2].partition("How to reproduce")[0]
    assert [line.split()[3] for line in added.splitlines() if "set of 2" in line] == ["+5.00%", "+3.00%"]


def test_a_loss_that_is_spread_shows_its_levels_along_history() -> None:
    levels = ((2, Interval(0.04, 0.05, 0.06)), (3, Interval(0.09, 0.1, 0.11)))
    found = concluded(Ending.SPREAD, levels=levels)
    assert found.count("Levels along history, relative to good") == 1
    assert found.index("+5.0% slower") < found.index("+10.0% slower")
    assert "Levels along history" not in concluded(Ending.INCONCLUSIVE, levels=levels)


def test_kernels_are_set_beside_each_other_of_one_commit_and_its_parent_alone() -> None:
    change = Interval(0.1, 0.1, 0.1)
    one = concluded(Ending.CULPRIT, Finding((3,), change, 0.98, parents=(2,), certified=True))
    assert "What differs besides code: 444444444444 and its parent" in one
    assert "    CONFIG_PREEMPT_NONE: y -> absent\n    CONFIG_PREEMPT_RT: absent -> y\n" in one
    several = concluded(Ending.CULPRIT_SET, Finding((3, 4), change, 0.98, parents=(2,), certified=True))
    alone = concluded(Ending.CULPRIT, Finding((3,), change, 0.98, certified=True))
    assert "What differs besides code" not in several + alone
    unknown = concluded(Ending.CULPRIT, Finding((1,), change, 0.98, parents=(0,), certified=True))
    assert "Unknown: one of the two kernels' configurations was not recorded." in unknown


def test_of_a_large_set_that_is_not_proven_no_commit_is_named() -> None:
    crowd = Finding(tuple(range(1, 60)), Interval(0.1, 0.1, 0.1), 0.9)
    early = Conclusion(Ending.INCONCLUSIVE, "", (crowd,))
    shas = tuple(f"{i:040x}" for i in range(60))
    graph = CommitGraph(shas, ((), *((i,) for i in range(59))), (False, *[True] * 59), 0, 59)
    material = dataclasses.replace(demo(), graph=graph, commits={}, records=[], decisions=[])
    under_way = dataclasses.replace(material, conclusion=None, so_far=early)
    assert "What is known so far" not in text.render(under_way)
    ended = text.render(dataclasses.replace(material, conclusion=early))
    assert "one of 59 commits, all of them in report.json" in ended
    small = Conclusion(Ending.INCONCLUSIVE, "", (Finding((1, 2), Interval(0.1, 0.1, 0.1), 0.9),))
    some = text.render(dataclasses.replace(material, conclusion=None, so_far=small))
    assert "What is known so far" in some and " more, all of them" not in some


def test_ends_that_were_not_compared_add_up_to_nothing() -> None:
    found = concluded(Ending.INCONCLUSIVE)
    assert "How it adds up\n--------------\n  The two ends were not compared.\n" in found


def test_as_many_lines_as_fit_are_all_there() -> None:
    found = told({i: f"error {i}" for i in range(1, 21)})
    assert "error 20" in found and "more lines" not in found
    assert "error 21" not in told({i: f"error {i}" for i in range(1, 31)})
    changes = tuple((f"OPTION_{i}", "n", "y") for i in range(1, 23))
    cut = "\n".join(text._changes("Options", changes))
    assert "OPTION_20: n -> y" in cut and "OPTION_21" not in cut and "and 2 more" in cut
    assert "more" not in "\n".join(text._changes("Options", changes[:20]))
