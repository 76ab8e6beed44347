"""The page of a bisection: its structure, its size, and hostile text in every place."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from bisector.linux.profile import Profile, Symbol
from bisector.model.decisions import Conclusion, Ending, Interval
from bisector.model.goal import Threshold
from bisector.model.records import Booted, Built
from bisector.report.html import bisection_page, effect_chart
from bisector.report.html.profile_section import TwoProfiles
from bisector.report.report_model import Material
from tests.support.report_material import HOSTILE, concluded, demo, sixty_boots

VOID = {"meta", "br", "link", "hr", "img", "input"}
MAX_BYTES = 300_000
SECTIONS = [
    "result",
    "levels",
    "posterior",
    "samples",
    "before-after",
    "sum",
    "testbeds",
    "differences",
    "trials",
    "drift",
    "untestable",
    "reproduce",
    "cost",
    "asked",
    "where",
]


class Page(HTMLParser):
    """A page, parsed strictly: every element is closed in its order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def profiles() -> TwoProfiles:
    def one(name: str, weight: float) -> Profile:
        main, inner = Symbol("main"), Symbol(HOSTILE)
        stacks = {(main,): 60.0, (main, inner): weight}
        return Profile(name, own={main: 60.0, inner: weight}, stacks=stacks, total=60.0 + weight)

    return TwoProfiles(one(HOSTILE, 30.0), one("b", 40.0))


@pytest.fixture(scope="module")
def sixty() -> str:
    return bisection_page.render(sixty_boots())


def test_structure(sixty: str) -> None:
    page = Page(sixty)
    assert [s["id"] for s in page.all("section")] == SECTIONS
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        for name in ("aria-labelledby", "aria-describedby"):
            assert all(i in ids for i in (attributes.get(name) or "").split())
        target = attributes.get("href") or ""
        assert not target or (target[0] == "#" and target[1:] in ids)
    drawings = page.all("svg")
    assert len(drawings) == 6  # levels, posterior, samples, before and after, sum, testbeds
    assert all(d["role"] == "img" and d["aria-labelledby"] for d in drawings)
    scrolled = [a for tag, a in page.elements if tag == "div" and a.get("class") == "wide"]
    assert all(a["tabindex"] == "0" and a["role"] == "region" and a["aria-label"] for a in scrolled)
    assert len(page.all("h1")) == 1


def test_a_search_of_sixty_boots_stays_small(sixty: str) -> None:
    assert len(sixty.encode()) < MAX_BYTES
    assert sum(1 for a in Page(sixty).all("tr") if (a.get("id") or "").startswith("trial-")) == 62


def test_nothing_is_loaded_from_elsewhere(sixty: str) -> None:
    own = re.sub(r"<script.*?</script>", "", sixty, flags=re.DOTALL)
    assert not re.search(r"\b(src|srcset|action|xlink:href)=|url\(|@import", own)
    assert set(re.findall(r"https?://[^\s\"'<]*", own)) <= {"http://www.w3.org/2000/svg"}
    assert not [
        a for _, a in Page(own).elements if any(name.startswith("on") or name == "style" for name in a)
    ]


def test_hostile_text_stays_text() -> None:
    """Subjects, authors, reasons, warnings, hosts, workloads, failures, testbeds, symbols."""
    made = sixty_boots(HOSTILE.replace("{", "{{").replace("}", "}}") + "{}")
    page = Page(bisection_page.render(made, profiles()))
    clean = Page(bisection_page.render(sixty_boots(), profiles()))
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in clean.elements]
    assert [sorted(a) for _, a in page.elements] == [sorted(a) for _, a in clean.elements]
    text = "".join(page.words)
    assert "}}build" in text and "does not boot (</script>" in text
    assert text.count("alert(1)") > 100 and "49" not in re.findall(r"\u202e(\S*)", text)
    assert "\x1b" not in text and "\u202e" not in text


def test_the_page_says_what_the_text_says() -> None:
    text = " ".join("".join(Page(bisection_page.render(demo())).words).split())
    for said in (
        "Culprit proven",
        '444444444444 ("x86: Allow to enable RT") makes real +19.41% slower',
        "compared afresh with its parent 333333333333: 2 fresh boots",
        "CONFIG_PREEMPT_RT becomes selectable with commit 444444444444",
        "What was found explains the change from good to bad within the interval.",
        "discarded the data of boot b3 (somebody rebooted the host)",
        "kernel/fork.c:88: error: 'x' undeclared",
        "splits the remaining mass 50 to 50",
    ):
        assert said in text


def without(material: Material, conclusion: Conclusion | None) -> list[str | None]:
    changed = dataclasses.replace(material, conclusion=conclusion)
    return [s["id"] for s in Page(bisection_page.render(changed)).all("section")]


def test_of_an_unfinished_bisection_and_of_one_without_data() -> None:
    assert "samples" in without(sixty_boots(), None) and "reproduce" not in without(sixty_boots(), None)
    empty = dataclasses.replace(demo(), records=(), decisions=())
    assert "samples" not in without(empty, Conclusion(Ending.INCONCLUSIVE, "The budget does not reach."))
    assert without(empty, None)[0] == "result"


def test_profiles_have_a_flame_graph() -> None:
    page = Page(bisection_page.render(demo(), profiles()))
    assert "profile" in [s["id"] for s in page.all("section")]
    assert [a["class"] for a in page.all("svg")].count("flame") == 1


def test_lines_of_the_threshold_are_named_where_they_are() -> None:
    def section(threshold: Threshold) -> str:
        metric = dataclasses.replace(demo().goal.metric, threshold=threshold)
        goal = dataclasses.replace(demo().goal, metric=metric)
        page = bisection_page.render(dataclasses.replace(demo(), goal=goal))
        return page.partition('<section id="sum"')[2].partition("</section>")[0]

    for threshold, drawn in (
        (Threshold(0.05), True),
        (Threshold(5.0), False),  # the changes would be tiny beside it
        (Threshold(0.01, relative=False), False),  # seconds, on an axis of percent
    ):
        found = section(threshold)
        assert "with their intervals" in found
        assert ('class="threshold"' in found) is ("dashed lines" in found) is drawn, threshold


def test_nothing_is_said_of_sides_that_are_not_known() -> None:
    found = bisection_page.render(sixty_boots())
    assert "Circles: older side; squares: with the change. Crosses could not be tested." in found
    assert "side is open</span>" not in found
    under_way = bisection_page.render(dataclasses.replace(sixty_boots(), conclusion=None, status="running"))
    assert "squares: with the change; diamonds: on which side is open. Crosses" in under_way
    assert "on which side is open</span>" in under_way and '"kind":"open"' in under_way
    untested = bisection_page.render(
        dataclasses.replace(
            sixty_boots(),
            records=[
                (n, one) for n, one in sixty_boots().records if not isinstance(one, Built | Booted) or one.ok
            ],
        )
    )
    assert "Crosses" not in untested


def test_a_change_in_the_other_direction_is_marked_as_what_it_is() -> None:
    material = sixty_boots()
    assert material.conclusion is not None
    (loss,) = material.conclusion.findings
    back = Interval(-0.07, -0.06, -0.05)
    gain = dataclasses.replace(loss, effect=back, commits=(material.graph.bad,), opposite=True)
    both = dataclasses.replace(material.conclusion, findings=(loss, gain))
    page = bisection_page.render(dataclasses.replace(material, conclusion=both))
    for chart in ("levels", "posterior", "samples"):
        drawing = page.partition(f'<section id="{chart}"')[2].partition("</section>")[0]
        assert drawing.count('class="band"') == drawing.count('class="band other"') == 1, chart
    assert page.count(">gain</text>") == 2
    assert 'class="band other"' not in bisection_page.render(material)


def test_effects_have_the_same_digits_in_the_drawing_and_in_the_table_below() -> None:
    """The drawing had two places: '+3.04%' above '+3.0%', '+0.03%' above '+0.0301%'."""
    rows = [
        ("all", Interval(0.000294, 0.000301, 0.000308), ""),
        ("one", Interval(0.01, 0.0304, 0.05), ""),
    ]
    drawing = effect_chart.render("sum", "the sum", rows)
    assert "all: +0.0301% (+0.0294% .. +0.0308%)" in drawing and ">+0.0301%</text>" in drawing
    assert "one: +3.0% (+1.0% .. +5.0%)" in drawing and ">+3.0%</text>" in drawing


def content(material: Material, name: str) -> Any:
    (found,) = [one.content for one in bisection_page.draw(material).sections if one.name == name]
    return found


def test_only_one_proven_commit_is_named_below_the_headline() -> None:
    material = demo()
    ends = '111111111111 ("Linux 6.1.176") and 555555555555 ("x86: Enable RT also on 32bit")'
    asked = f"4 candidates between {ends}, judged by real."
    named = '444444444444 ("x86: Allow to enable RT") makes real +19.41% slower (+19.35% .. +19.47%).'
    assert bisection_page.draw(material).lead == named
    assert bisection_page.draw(concluded(material, certified=False)).lead == asked
    assert material.conclusion is not None
    (one,) = material.conclusion.findings
    two = dataclasses.replace(material.conclusion, findings=(one, dataclasses.replace(one, commits=(2,))))
    assert bisection_page.draw(dataclasses.replace(material, conclusion=two)).lead == asked
    assert bisection_page.draw(dataclasses.replace(material, conclusion=None)).lead == asked
    open_ = dataclasses.replace(material, conclusion=None, status="paused")
    assert bisection_page.draw(open_).headline == "No conclusion yet: paused"


def test_the_result_has_what_is_known_and_what_is_doubtful() -> None:
    material = sixty_boots()
    found = content(material, "result")
    assert [one.sha for one in found["findings"][0]["commits"]] == [material.graph.shas[20]]
    assert found["findings"][0]["more"] == 0 and found["summary"] == "sched: rework number summary"
    assert found["warnings"] == ("sched: rework number warning",)
    page = bisection_page.render(material)
    assert found["summary"] in page and found["warnings"][0] in page
    crowd = content(concluded(material, commits=tuple(range(1, 33))), "result")["findings"][0]
    assert (len(crowd["commits"]), crowd["more"]) == (20, 12)
    suspects = concluded(material, commits=tuple(range(1, 33)), certified=False)
    assert len(content(suspects, "result")["findings"]) == 1, "a result says that there is a set"
    so_far = dataclasses.replace(suspects, conclusion=None, so_far=suspects.conclusion)
    assert content(so_far, "result")["findings"] == [], "a search has not narrowed it down yet"


def test_the_table_of_trials_marks_the_culprits() -> None:
    rows = content(demo(), "trials")["rows"]
    assert [row["number"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row["culprit"] for row in rows] == [row["label"].startswith("4444") for row in rows]
    assert any(row["culprit"] for row in rows)
    cut = dataclasses.replace(demo(), cut_consoles=frozenset({"b2"}))
    assert [row["boot"] for row in content(cut, "trials")["rows"] if row["cut"]] == ["b2"]


def test_configuration_is_told_from_the_older_commit_to_the_newer() -> None:
    assert content(demo(), "drift")[0] == (
        "CONFIG_PREEMPTION: absent -> y",
        "333333333333..444444444444, commits: 1",
    )


def test_a_set_of_commits_has_no_parent_that_it_differs_from() -> None:
    names = [one.name for one in bisection_page.draw(concluded(demo(), commits=(2, 3))).sections]
    assert "differences" not in names
