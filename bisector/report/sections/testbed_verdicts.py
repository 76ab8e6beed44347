"""The report's verdict for each testbed, where several have measured: disagreement comes first."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from bisector.model.commit_graph import short_name
from bisector.report import phrases
from bisector.report.report_model import Material, named

LEAST_P = 0.001
"""Smaller p are not printed: a few boots cannot support them."""

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bisector.search.testbeds.testbed_effects import TestbedEffect, TestbedEffects


def found(material: Material) -> Iterator[tuple[int, int, TestbedEffects]]:
    """Yield (before, after, what each testbed shows): of the two ends, then of each certified finding."""
    if len({visit.testbed for visit in material.state.visits}) < 2:
        return
    from bisector.search.testbeds.testbed_effects import effects_by_testbed

    state, graph = material.state, material.graph
    ends = effects_by_testbed(state, graph.good, [graph.bad], "verify")
    if ends is not None:
        yield graph.good, graph.bad, ends
    for finding in material.conclusion.findings if material.conclusion is not None else ():
        for parent in finding.parents if finding.certified else ():
            effects = effects_by_testbed(state, parent, finding.commits, "certify")
            if effects is not None:
                yield parent, named(finding)[-1], effects


def lines(material: Material) -> list[str]:
    """Return the sections; empty where fewer than two testbeds have measured and none was set aside."""
    out: list[str] = []
    for before, after, effects in found(material):
        out += phrases.heading(f"On each testbed: {compared(material, before, after)}")
        out += phrases.pairs({one.testbed: row(material, one) for one in effects.each})
        out += phrases.wrap(agreement(material, effects))
    if material.set_aside:
        out += phrases.heading("Testbeds that failed, and were set aside")
        out += phrases.bullets(set_aside(material))
    return out


def compared(material: Material, before: int, after: int) -> str:
    """Return which two kernels were compared, in words."""
    terms = material.goal.terms
    if (before, after) == (material.graph.good, material.graph.bad):
        return f"{terms.old.capitalize()} to {terms.new}"
    child, parent = (short_name(material.commit(index).sha) for index in (after, before))
    return f"{child} against its {terms.parent} {parent}"


def set_aside(material: Material) -> list[str]:
    """Return a sentence for each testbed that failed."""
    return [f"{one.testbed}, {phrases.date(one.at)}: {one.failure}" for one in material.set_aside]


def render(material: Material) -> list[dict[str, Any]]:
    """Return the same as JSON values."""
    shas = material.graph.shas
    return [
        {
            "from": shas[before],
            "to": shas[after],
            "disagree": effects.disagree,
            "p": effects.p,
            "testbeds": [dataclasses.asdict(one) for one in effects.each],
        }
        for before, after, effects in found(material)
    ]


def row(material: Material, one: TestbedEffect) -> str:
    """Return what one testbed shows, in words."""
    way = phrases.verdict(one.effect.estimate, material.goal.metric)
    verdict = {
        "reproduced": "reproduced",
        "opposite": f"{way} there: the other direction",
        "small": "less than the threshold there",
        "none": "not reproduced there",
        "open": "too few boots there to tell",
    }[one.shows]
    boots = f"{one.boots[0]} + {one.boots[1]} boots"
    return f"{phrases.effect(one.effect, material.goal.metric)}, {boots}: {verdict}"


def agreement(material: Material, effects: TestbedEffects) -> str:
    """Return whether the testbeds agree, and what to do where they do not; opposite directions come first."""
    used = material.conclusion.searched_on if material.conclusion is not None else ()
    if not effects.disagree:
        return "The testbeds do not differ by more than chance."
    on: dict[str, list[str]] = {}
    for one in effects.each:
        on.setdefault(one.shows, []).append(one.testbed)
    reproduced, absent = (
        on.get("reproduced", []),
        [
            f"{verdict} on {', '.join(on[shown])}"
            for shown, verdict in (("none", "not reproduced"), ("small", "below the threshold"))
            if shown in on
        ],
    )
    if "opposite" in on and len(on) > 1:
        text = f"THE TESTBEDS DISAGREE IN DIRECTION: {', '.join(on['opposite'])} against the others"
    elif reproduced and absent:
        text = f"THE TESTBEDS DISAGREE: {', '.join(absent)}"
    else:
        text = "The testbeds differ in the size of the change"
    chance = f"p {effects.p:.2g}" if effects.p >= LEAST_P else f"p < {LEAST_P:g}"
    text += f" ({chance})."
    if used:
        return (
            f"{text} It was searched where it shows, on {', '.join(used)}: all else here is of there alone."
        )
    text += " What is said of all together is a mean over them."
    if reproduced and len(reproduced) < len(effects.each):
        again = " ".join(f"--testbed {name}" for name in reproduced)
        text += f" To search where it shows: {again}"
    return text
