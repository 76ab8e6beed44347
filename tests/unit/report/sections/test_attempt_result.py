"""The report of a try, word for word: verdict, three kernels, and the commands that repeat it."""

from __future__ import annotations

import dataclasses

import pytest

from bisector.model.decisions import Conclusion, Ending, Interval, Mending
from bisector.model.records import Booted, Built, Ran, Record
from bisector.report import json_report, text
from bisector.report.report_model import Commit, Material
from bisector.report.sections import attempt_result
from bisector.schemas.request import Attempt
from tests.support.expected import check
from tests.support.report_material import demo

CULPRIT, PARENT, TRIED = "4" * 40, "3" * 40, "f" * 40
ATTEMPT = Attempt(
    of="pipe-test-3f2a",
    culprit=CULPRIT,
    unpatched=CULPRIT,
    tried=TRIED,
    patches=("/home/me/fix.patch",),
    sums=("0",),
)
MENDING = Mending(
    Interval(0.19, 0.2, 0.21),
    Interval(-0.17, -0.16, -0.15),
    Interval(-0.005, 0.002, 0.009),
    Interval(0.94, 0.99, 1.04),
)


def material(ending: Ending | None = Ending.MENDED) -> Material:
    """Return a try of a patch on the culprit of the usual bisection, each kernel measured once."""
    shas = (PARENT, CULPRIT, TRIED)
    graph = dataclasses.replace(
        demo().graph, shas=shas, parents=((), (0,), (1,)), candidate=(False, True, True), bad=1
    )
    records: list[tuple[int, Record]] = []
    for commit, value in enumerate((0.15, 0.18, 0.1503)):
        boot = f"boot-{commit}"
        made: tuple[Record, ...] = (
            Built(commit, True, 60.0, f"k{commit}"),
            Booted(boot, commit, "guest", True, 6.0, 1_790_000_000.0 + commit, purpose="certify"),
            Ran(boot, 0, {"real": value}, 2.0, 1_790_000_001.0 + commit),
        )
        records += [(3 * commit + number, record) for number, record in enumerate(made, start=1)]
    names = ("signal: A comment", "x86: Allow to enable RT", ATTEMPT.tried_name())
    conclusion = Conclusion(ending, "The loss is gone.", confidence=0.95, mending=MENDING) if ending else None
    return dataclasses.replace(
        demo(),
        id="try-pipe-test-77aa",
        request={"repo": "/home/me/linux", "workload": "pipe-test", "recipe": "x86_64-guest"},
        graph=graph,
        conclusion=conclusion,
        status="done" if ending else "running",
        records=records,
        decisions=[],
        commits={i: Commit(sha, name) for i, (sha, name) in enumerate(zip(shas, names, strict=True))},
        attempt=ATTEMPT,
    )


def test_the_report_word_for_word() -> None:
    check("report-try.txt", text.render(material()))


def test_the_patched_kernel_is_made_again_from_the_unpatched_commit() -> None:
    whole = text.render(material())
    assert (
        f"workload run pipe-test --rev {CULPRIT} --repo /home/me/linux --recipe x86_64-guest --apply" in whole
    )
    assert TRIED not in whole.partition("How to reproduce")[2].partition("What it cost")[0]
    assert "perfbisect try pipe-test-3f2a --apply /home/me/fix.patch" in whole


def test_one_under_way_shows_what_was_measured() -> None:
    shown = text.short(material(None))
    assert "No conclusion yet: running." in shown
    assert "0.15030 s" in shown


def said(found: Material) -> str:
    """Return the result of a try on one line."""
    assert found.attempt is not None
    return " ".join(" ".join(attempt_result.lines(found, found.attempt)).split())


def without(found: Material, *commits: int) -> Material:
    """Return a try in which some kernels were not measured yet."""
    names = {f"boot-{commit}" for commit in commits}
    records = [(number, one) for number, one in found.records if getattr(one, "boot", "") not in names]
    return dataclasses.replace(found, records=records)


def test_what_is_known_so_far_is_no_conclusion() -> None:
    early = Conclusion(Ending.MENDED, "The loss seems gone.", confidence=0.8, mending=MENDING)
    shown = said(dataclasses.replace(material(None), so_far=early))
    assert shown.startswith("No conclusion yet: running.")
    assert "of the loss gone 99%" in shown


@pytest.mark.parametrize(
    ("missing", "levels"),
    [
        ((2,), "mean of each ------------------ parent 0.15000 s culprit 0.18000 s What the change"),
        ((0,), "mean of each ------------------ culprit 0.18000 s tried 0.15030 s What the change"),
        ((0, 1), "mean of each ------------------ tried 0.15030 s What the change"),
    ],
)
def test_each_level_stands_at_its_own_kernel_where_one_is_missing(
    missing: tuple[int, ...], levels: str
) -> None:
    early = dataclasses.replace(material(None), so_far=material().conclusion)
    assert levels in said(without(early, *missing))


def test_each_of_several_testbeds_has_levels_of_its_own() -> None:
    """One mean was shown over testbeds of which one reads four times as much as the other."""
    found, slow = material(), {0: 0.6, 1: 0.9}
    records: list[tuple[int, Record]] = list(found.records)
    for commit, value in slow.items():
        boot, at = f"slow-{commit}", 1_790_000_100.0 + commit
        records.append((100 + commit, Booted(boot, commit, "slow", True, 6.0, at, purpose="certify")))
        records.append((200 + commit, Ran(boot, 0, {"real": value}, 2.0, at + 1)))
    shown = said(dataclasses.replace(found, records=records))
    for levels in (
        "real, mean of each on guest --------------------------- "
        "parent 0.15000 s culprit 0.18000 s tried 0.15030 s real,",
        "real, mean of each on slow -------------------------- parent 0.60000 s culprit 0.90000 s What",
    ):
        assert levels in shown


def test_levels_have_the_decimals_of_the_largest() -> None:
    found = material()
    records = [
        (number, dataclasses.replace(one, values={"real": {0: -150.0, 1: -0.25, 2: 1.5}[number // 3 - 1]}))
        if isinstance(one, Ran)
        else (number, one)
        for number, one in found.records
    ]
    shown = said(dataclasses.replace(found, records=records))
    assert "parent -150.00 s culprit -0.25 s tried 1.50 s" in shown


def test_patches_on_another_commit_than_the_culprit_name_both() -> None:
    other = ATTEMPT.model_copy(update={"unpatched": "5" * 40})
    shown = said(dataclasses.replace(material(), attempt=other))
    assert "unpatched 444444444444" in shown, "the commit of the graph's second kernel"
    assert f"of pipe-test-3f2a, culprit {CULPRIT[:12]}" in shown
    assert "parent to unpatched +20.0%" in shown
    moved = ATTEMPT.model_copy(update={"culprit": "6" * 40})
    assert "of pipe-test-3f2a, culprit 666666666666" in said(dataclasses.replace(material(), attempt=moved))


def test_warnings_stand_below_the_result() -> None:
    found = material()
    assert found.conclusion is not None
    warned = dataclasses.replace(found.conclusion, warnings=("The memory differs.",))
    assert said(dataclasses.replace(found, conclusion=warned)).endswith("Warnings: * The memory differs.")
    assert "Warnings" not in said(found)


def test_json_has_the_attempt_and_what_it_does() -> None:
    told = json_report.render(material())
    assert told["attempt"]["patches"] == ["/home/me/fix.patch"]
    assert told["mending"]["share"] == {"low": 0.94, "estimate": 0.99, "high": 1.04}
    assert json_report.render(demo())["attempt"] is None


def test_a_kernel_that_ran_twice_is_compared_by_its_first_run() -> None:
    """By the clock that counts instructions: the second run of a boot executes less."""
    again = (999, Ran("boot-1", 1, {"real": 0.17}, 2.0, 1_790_000_009.0))
    found = material()
    words = " ".join(text.render(dataclasses.replace(found, records=[*found.records, again])).split())
    assert "real, mean as of run 0 of each" in words
    assert "parent 0.15000 s culprit 0.18000 s tried 0.15030 s" in words
