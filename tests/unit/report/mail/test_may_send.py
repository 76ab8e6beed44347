"""Each reason not to tell maintainers: one wrong thing in a sound report gives exactly that reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bisector.model.decisions import Conclusion, Ending, Finding, Interval
from bisector.model.goal import Goal, Metric, Threshold
from bisector.model.records import Booted, Built, Left, Ran, Record
from bisector.report.mail.may_send import culprits_of, may_send
from bisector.report.report_model import Material
from bisector.schemas.request import Attempt
from bisector.testing.fakes import METRIC
from tests.support.report_material import CULPRIT, GRAPH, W2, demo, differing_records, uneven_runs

SOUND = demo()
assert SOUND.conclusion is not None
FOUND = SOUND.conclusion.findings[0]


def with_finding(material: Material, finding: Finding) -> Material:
    assert material.conclusion is not None
    return replace(material, conclusion=replace(material.conclusion, findings=(finding,)))


def with_records(change: Callable[[Record], Record]) -> Material:
    return replace(SOUND, records=[(number, change(record)) for number, record in SOUND.records])


def layouts(after: float, *more: tuple[int, str, float]) -> Material:
    """Add a boot of both kernels with another layout, where the parent takes 0.158 s.

    more: commit, testbed and time of further ones.
    """
    records, number = list(SOUND.records), 1000
    for commit, testbed, value in ((2, "laptop-icount", 0.158), (3, "laptop-icount", after), *more):
        boot = f"layout-{number}"
        made: list[Record] = [
            Booted(boot, commit, testbed, True, 1.0, 1.0, layout=1, purpose="certify"),
            Ran(boot, 0, {"real": value}, 1.0, 1.0),
            Left(boot),
        ]
        records += [(number + i, one) for i, one in enumerate(made)]
        number += 10
    return replace(SOUND, records=records)


def boots(commit: int, **changes: Any) -> Callable[[Record], Record]:
    def change(record: Record) -> Record:
        return (
            replace(record, **changes) if isinstance(record, Booted) and record.commit == commit else record
        )

    return change


def same_binaries(record: Record) -> Record:
    return replace(record, binary="b") if isinstance(record, Built) and record.ok else record


def flagged(*boots: str) -> Callable[[Record], Record]:
    """Flag the last run of boots."""

    def change(record: Record) -> Record:
        if isinstance(record, Ran) and record.boot in boots and record.index == 2:
            return replace(record, flags=("clock",))
        return record

    return change


def unbuilt_parent() -> Material:
    graph = replace(SOUND.graph, parents=((), (0,), (1,), (1, 2), (3,)))
    return replace(SOUND, graph=graph)


def layout_warning() -> Material:
    assert SOUND.conclusion is not None
    warned = replace(SOUND.conclusion, warnings=("Builds differ ...: code layout matters here.",))
    return replace(SOUND, conclusion=warned)


def test_a_sound_report_may_be_sent() -> None:
    assert may_send(SOUND, FOUND, suspect={}) == []
    for probability in (None, 0.5):
        finding = replace(FOUND, probability=probability)
        assert may_send(with_finding(SOUND, finding), finding, suspect={}) == []
    for value in (0.189, 0.1749):  # half of the change at least
        assert may_send(layouts(value), FOUND, suspect={"another": "moved"}) == []
    tenfold = [(2, "another", 1.58), (2, "another", 1.58), (3, "another", 1.89)]
    assert may_send(layouts(0.189, *tenfold), FOUND, suspect={}) == [], "each testbed has its own level"
    elsewhere = with_records(boots(0, testbed="another"))
    assert may_send(elsewhere, FOUND, suspect={"another": "moved"}) == [], "it measured other commits"
    assert may_send(with_records(flagged("b1", "b2")), FOUND, suspect={}) == [], "in boots of other commits"
    other_layout = (2000, Built(3, True, 1.0, "b2", layout=1))
    assert may_send(replace(SOUND, records=[*SOUND.records, other_layout]), FOUND, suspect={}) == []


def test_other_layouts_are_compared_run_by_run() -> None:
    """Three runs of the one against one of the other were 'it changes by -0.6%', where it adds 1%."""
    material = uneven_runs(more=1.01)
    records: list[tuple[int, Record]] = [
        (n, replace(one, layout=1) if isinstance(one, Booted) and one.boot in ("u9", "u19") else one)
        for n, one in material.records
    ]
    finding = replace(FOUND, effect=Interval(0.009, 0.01, 0.011))
    assert may_send(with_finding(replace(material, records=records), finding), finding, suspect={}) == []


@pytest.mark.parametrize(
    ("material", "reason"),
    [
        (with_finding(SOUND, replace(FOUND, certified=False)), "it is no certified culprit"),
        (with_finding(SOUND, replace(FOUND, small=True)), "it is no certified culprit"),
        (with_finding(SOUND, replace(FOUND, opposite=True)), "it is no certified culprit"),
        (replace(SOUND, goal=replace(SOUND.goal, find="fix")), "it is no certified culprit"),
        (replace(SOUND, goal=replace(SOUND.goal, unit="kernel")), "it was found among listed kernels"),
        (replace(SOUND, conclusion=None), "it is no certified culprit"),
        (with_finding(SOUND, replace(FOUND, probability=0.499)), "its probability is 49.9%, in spite of"),
        (with_records(same_binaries), "its kernel is the same as its parent's"),
        (layouts(0.158), "with other code layouts it changes by +0.0%: the layout matters"),
        (layouts(0.150), "with other code layouts it changes by -5.1%: the layout matters"),
        (layouts(0.120), "with other code layouts it changes by -24.1%: the layout matters"),
        (layouts(0.1717), "with other code layouts it changes by +8.7%: the layout matters"),
        (layouts(0.170), "with other code layouts it changes by +7.6%: the layout matters"),
        (layout_warning(), "code layout matters in this range, and no other layout was compared"),
        (
            with_records(boots(3, facts={"clocksource": "hpet"})),
            "the clocksource changes with it on laptop-icount: hpet, tsc",
        ),
        (with_records(flagged("b6")), "the clocks of guest and host disagreed on laptop-icount"),
        (unbuilt_parent(), "its parent 222222222222 could not be tested: "),
    ],
)
def test_one_wrong_thing_is_one_reason(material: Material, reason: str) -> None:
    conclusion = material.conclusion
    finding = conclusion.findings[0] if conclusion is not None else FOUND
    (found,) = may_send(material, finding, suspect={})
    assert found.startswith(reason)


def test_a_testbed_that_is_suspect_now() -> None:
    found = may_send(SOUND, FOUND, suspect={"laptop-icount": "moved by 3%"})
    assert found == ["testbed 'laptop-icount' is suspect: moved by 3%"]


def test_several_commits_and_effects_that_are_not_compared_with_each_parent() -> None:
    several = replace(FOUND, commits=(2, 3))
    assert may_send(with_finding(SOUND, several), several, suspect={})[0].startswith(
        "it is no certified culprit"
    )
    graph = replace(SOUND.graph, parents=((), (0,), (0,), (0, 2), (3,)))
    assert may_send(replace(SOUND, graph=graph), FOUND, suspect={}) == [
        "it was not compared with each of its parents"
    ]


def test_testbeds_that_disagree() -> None:
    finding = Finding((CULPRIT,), Interval(0.02, 0.04, 0.06), 0.97, (CULPRIT - 1,), certified=True)
    material = replace(
        SOUND,
        graph=GRAPH,
        goal=Goal(Metric(METRIC, "s", "lower", Threshold(0.03))),
        conclusion=Conclusion(Ending.CULPRIT, "Proven.", (finding,)),
        records=list(enumerate(differing_records(W2), start=1)),
        decisions=(),
    )
    assert may_send(material, finding, suspect={}) == ["the testbeds disagree"]
    proofs = {one.boot for _, one in material.records if isinstance(one, Booted) and one.purpose == "certify"}
    assert proofs
    of_ends = [(n, one) for n, one in material.records if getattr(one, "boot", "") not in proofs]
    of_proofs = [(n, one) for n, one in material.records if (n, one) not in of_ends or isinstance(one, Built)]
    for records in (of_ends, of_proofs):
        told = may_send(replace(material, records=records), finding, suspect={})
        assert told == ["the testbeds disagree"], "about the ends, or about the culprit"
    other = replace(finding, commits=(2,), parents=(1,))
    both = replace(
        material, conclusion=Conclusion(Ending.CULPRITS, "Proven.", (finding, other)), records=of_proofs
    )
    assert may_send(both, other, suspect={}) == [], "they disagree about another culprit"
    told = may_send(material, finding, suspect={"westmere": "moved"})
    assert told == ["testbed 'westmere' is suspect: moved", "the testbeds disagree"]


def test_culprits_are_those_that_are_proven() -> None:
    assert culprits_of(SOUND) == [FOUND]
    assert SOUND.conclusion is not None
    other = Finding((1,), Interval(0.1, 0.2, 0.3), 0.6)
    both = replace(SOUND.conclusion, findings=(FOUND, other))
    assert culprits_of(replace(SOUND, conclusion=both)) == [FOUND]
    tried = Attempt(of="b-1", culprit="a" * 40, unpatched="a" * 40, tried="b" * 40)
    assert culprits_of(replace(SOUND, attempt=tried)) == [], "a try measures what a search has proven"
