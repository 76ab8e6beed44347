"""The flame graph as SVG."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

from bisector.report.profiles import flame_graph
from tests.support.samples import NEW, OLD, recorded


def test_the_svg_is_well_formed_red_where_more_and_blue_where_less() -> None:
    odd = recorded("<new> & co", {"sys_read vfs_read lock": 900, "operator<< idle": 100})
    text = flame_graph.render(OLD, odd, {"lock"})
    boxes = {}
    for group in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}g"):
        title, box = group[0].text or "", group[1]
        boxes[title.split(":")[0]] = box
    assert re.match(r"#ff6e6e", boxes["[k] lock"].get("fill", ""))
    assert boxes["[k] lock"].get("stroke") == "#000000"
    assert boxes["[k] operator<<"].get("stroke") == "#ffffff"
    blue = flame_graph.render(NEW, OLD)
    assert 'fill="#6e6eff"' in blue


def test_a_frame_that_did_not_change_is_seen_on_white_and_on_black() -> None:
    text = flame_graph.render(NEW, NEW)
    fills = set(re.findall(r'fill="(#[0-9a-f]{6})" stroke', text))
    assert fills == {"#e8e8e8"}


def test_within_a_page_the_ground_is_that_of_the_page() -> None:
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    assert ground in flame_graph.render(OLD, NEW)
    assert ground not in flame_graph.render(OLD, NEW, embedded=True)


def test_counts_of_a_run_are_compared_as_counts_whatever_becomes_of_shares() -> None:
    before = recorded("old", {"sys_read vfs_read": 600, "sys_read lock": 400})
    after = recorded("new", {"sys_read vfs_read": 600, "sys_read lock": 900})
    counted = flame_graph.render(replace(before, exact=True), replace(after, exact=True))
    found = {
        (title.text or "").partition(": ")[0]: ((title.text or "").partition(": ")[2], box.get("fill"))
        for title, box, *_ in ElementTree.fromstring(counted).iter("{http://www.w3.org/2000/svg}g")
    }
    assert found["[k] vfs_read"] == ("600, was 600 (+0, +0.00% of all)", "#e8e8e8")
    assert found["[k] lock"] == ("900, was 400 (+500, +50.00% of all)", "#ff6e6e")
    assert "Red: executes more than in old" in counted
    for one, other in ((replace(before, exact=True), after), (before, replace(after, exact=True))):
        sampled = flame_graph.render(one, other)
        assert "[k] vfs_read: 40.00%, was 60.00% (-20.00 points)" in sampled
        assert "Red: more than in old" in sampled
