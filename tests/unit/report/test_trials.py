"""What each trial says, and what the trials cost."""

from __future__ import annotations

import dataclasses

import pytest

from bisector.model.decisions import Conclusion, Ending, Interval
from bisector.model.goal import Goal, Metric, Threshold
from bisector.model.records import Booted, Built, Discarded, Ran, Record
from bisector.model.state import Visit
from bisector.report import pictures, text, trials
from bisector.report.html import chart_sections, measured_boots
from bisector.report.report_model import Material, Trial
from tests.support.report_material import demo, two_levels


def test_the_level_leaves_out_warm_ups_and_discarded_boots() -> None:
    here = "laptop-icount"
    assert trials.level(demo(), 2, here) == pytest.approx(0.15829 + 0.00003)  # of b5; b3 is discarded
    assert trials.level(demo(), 3, here) == pytest.approx((0.18899 + 0.18901) / 2 + 0.00003)
    assert trials.level(demo(), 1, here) is None
    assert trials.level(demo(), 2, "another") is None


def test_a_boot_weighs_the_same_however_often_was_run_in_it() -> None:
    """All three places that name the mean of a commit have the same one."""
    boots = [(0, [100.0, 100.0]), (4, [110.0, 110.0]), (2, [100.0, 100.0])]
    boots += [(3, [120.0, 120.0, 120.0, 120.0, 120.0, 120.0]), (3, [106.0, 106.0])]
    records: list[Record] = []
    for commit, values in boots:
        name = f"b{len(records)}"
        records.append(Booted(name, commit, "fake", True, 1.0, 1e9))
        records += [Ran(name, k, {"real": value}, 2.0, 1e9 + k) for k, value in enumerate(values)]
    material = dataclasses.replace(demo(), records=list(enumerate(records)))
    assert trials.level(material, 3, "fake") == pytest.approx(113.0)  # not 116.5
    drawn = chart_sections.before_after(material, measured_boots.measured_boots(material))
    assert drawn is not None
    assert drawn["change"] == "+13.00% slower"
    assert "mean 113.00, 8 runs" in str(drawn["chart"])
    assert "113.00  8 runs" in "\n".join(pictures.strip(material, 70))


def test_levels_side_by_side_are_of_the_testbeds_that_measured_all() -> None:
    assert trials.levels(two_levels(), (2, 3)) == pytest.approx((150.0, 157.5))
    assert trials.levels(demo(), (2, 1)) is None
    alone = [(n, r) for n, r in two_levels().records if not (isinstance(r, Booted) and r.commit == 3)]
    assert trials.levels(dataclasses.replace(two_levels(), records=alone), (2, 3)) is None


def test_a_trial_lies_between_the_ends_of_its_own_testbed() -> None:
    material = two_levels()
    said = [trials.verdict(material, trial) for trial in material.trials]
    assert said[:4] == [
        "the good end",
        "+5.00% slower than good: the bad end",
        "the good end",
        "+5.00% slower than good: the bad end",
    ]
    assert said[4].endswith("good's side, 0% of the way")


def test_verdicts_of_a_finished_bisection() -> None:
    material = demo()
    said = [trials.verdict(material, trial) for trial in material.trials]
    assert said[0] == "the good end"
    assert said[1] == "+19.49% slower than good: the bad end"
    assert said[2] == "discarded by the user"
    assert said[4] == "+0.01% slower than good: good's side, 0% of the way"


def test_one_build_has_one_time() -> None:
    """It was '1, 95 s in all, 95 s to 95 s each'."""
    material = demo()
    one = [(n, r) for n, r in material.records if not (isinstance(r, Built) and r.commit)]
    assert trials.costs(dataclasses.replace(material, records=one))["builds"] == "1, 95 s"
    assert " to " in trials.costs(material)["builds"]
    alike = [
        (n, dataclasses.replace(r, seconds=60.0) if isinstance(r, Built) else r) for n, r in material.records
    ]
    assert (
        trials.costs(dataclasses.replace(material, records=alike))["builds"] == "5, 5 min in all, 60 s each"
    )


def test_a_level_has_no_side_where_the_ends_may_be_equal() -> None:
    """It was '9378% of the way', between ends that differ by noise."""
    material = demo()
    alike = Conclusion(Ending.NOT_REPRODUCED, "", total=Interval(-0.004, 0.001, 0.006))
    apart = Conclusion(Ending.NOT_REPRODUCED, "", total=Interval(0.001, 0.002, 0.003))
    for known, side in ((alike, ""), (apart, ": bad's side, 100% of the way")):
        for more in ({"conclusion": known}, {"conclusion": None, "so_far": known}):
            found = dataclasses.replace(material, **more)
            assert trials.verdict(found, found.trials[3]) == f"+19.41% slower than good{side}"


def test_less_is_worse_where_higher_is_better() -> None:
    material = demo()
    goal = Goal(Metric("real", "ops", "higher", Threshold(0.05)))
    higher = dataclasses.replace(material, goal=goal)
    assert trials.verdict(higher, higher.trials[3]).startswith("+19.41% faster than good: bad's side")


def test_of_levels_below_zero_the_lower_is_less() -> None:
    """-6 was told as 19% slower than -5, where lower is better; the page's picture said so as well."""
    material = demo()
    records = [
        (at, dataclasses.replace(one, values={k: -v for k, v in one.values.items()}))
        if isinstance(one, Ran)
        else (at, one)
        for at, one in material.records
    ]
    negative = dataclasses.replace(material, records=records)
    assert trials.verdict(negative, negative.trials[3]).startswith("-19.41% faster than good")
    picture = chart_sections.before_after(negative, measured_boots.measured_boots(negative))
    assert picture is not None and picture["change"] == "-19.40% faster"


def trial(booted: Booted, **more: object) -> Trial:
    return Trial(Visit(booted, failure=booted.failure), **more)  # type: ignore[arg-type]


def test_failures_and_boots_without_samples() -> None:
    material = demo()
    dead = Booted("b", 3, "t", False, 1.0, 0.0, failure="kernel panic: attempted to kill init")
    assert trials.verdict(material, trial(dead)) == (
        "skip: does not boot (kernel panic: attempted to kill init)"
    )
    alive = dataclasses.replace(dead, ok=True, failure="")
    assert trials.verdict(material, trial(alive)) == "no samples"
    warm = trial(alive, values=((0, 1.0, (), True), (1, 2.0, ("stall",), False)))
    assert trials.verdict(material, warm) == "no samples"
    assert trials.values(warm) == "(1.0000) 2.0000[stall]"


def test_a_boot_that_failed_once_its_runs_counted_says_both() -> None:
    material = demo()
    first = material.trials[0]
    for failed, said in (
        (False, "the good end; then it failed, and was tried once more (too slow)"),
        (True, "skip: the workload fails (too slow)"),
    ):
        visit = dataclasses.replace(first.visit, failed=failed, failure="too slow")
        one = dataclasses.replace(first, visit=visit)
        assert trials.verdict(material, one) == said
        assert one.failure == ("too slow" if failed else "")


def test_of_many_runs_twelve_are_printed() -> None:
    many = Trial(demo().trials[0].visit, values=tuple((i, float(i), (), False) for i in range(15)))
    assert trials.values(many).endswith("11.000 and 3 more")


def test_costs() -> None:
    assert trials.costs(demo()) == {
        "builds": "5, 7 min in all, 12 s to 99 s each",
        "boots": "6, 39 s in all",
        "runs": "18, 36 s in all",
        "overhead": "perfbisect adds 3.9 s to a trial on average, 3.9 s at most, beyond build, boot and runs",
    }
    nothing = dataclasses.replace(demo(), records=[])
    assert isinstance(nothing, Material)
    assert trials.costs(nothing)["builds"] == "none"


def test_a_paragraph_for_each_trial_and_a_list_of_failed_builds() -> None:
    text = "\n".join(trials.lines(demo()))
    assert "Every trial (6)" in text
    assert "why: a fresh boot of the culprit for the proof" in text
    assert "Commits that do not build (1):" in text


def test_a_proof_counts_the_boots_that_count() -> None:
    material = two_levels()
    assert material.conclusion is not None
    (proven,) = material.conclusion.findings
    assert trials.fresh_boots(material, proven) == 6
    boots = [r.boot for _, r in material.records if isinstance(r, Booted) and r.purpose == "certify"]
    dead = [
        (n, dataclasses.replace(r, ok=False, failure="panic") if isinstance(r, Booted) else r)
        if getattr(r, "boot", "") == boots[0]
        else (n, r)
        for n, r in material.records
    ]
    last = len(material.records)
    gone = dataclasses.replace(material, records=[*dead, (last, Discarded("boot", boots[1], "busy"))])
    assert trials.fresh_boots(gone, proven) == 4
    assert "4 fresh boots" in text.render(gone)
