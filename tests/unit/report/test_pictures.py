"""Pictures in characters."""

from __future__ import annotations

import dataclasses

import pytest

from bisector.model.decisions import Measure
from bisector.report import pictures
from tests.support.report_material import demo, two_levels


@pytest.mark.parametrize(
    ("share", "drawn"),
    [(0.0, "    "), (1 / 32, "▏   "), (0.5, "██  "), (1.0, "████"), (1.5, "████"), (-1.0, "    ")],
)
def test_a_bar_is_drawn_to_an_eighth_of_a_character(share: float, drawn: str) -> None:
    assert pictures.bar(share, 4) == drawn


def test_suspects_and_all_others_together() -> None:
    lines = pictures.suspects([(7, 0.75), (3, 0.1)], "commit {}".format)
    assert lines == [
        " 75% ███████████████      commit 7",
        " 10% ██                   commit 3",
        " 15% ███                  other commits, or none",
    ]
    assert pictures.suspects([(7, 0.999)], "commit {}".format) == ["100% ████████████████████ commit 7"]
    assert pictures.suspects([], str) == []
    many = pictures.suspects([(commit, 0.1) for commit in range(9)], "commit {}".format)
    assert len(many) == 6 and many[-1].startswith(" 50%") and "other commits" in many[-1]


def test_samples_lie_on_one_axis_in_the_order_of_history() -> None:
    head, *rows = pictures.strip(demo(), 70)
    assert head.startswith("real ") and head.rstrip().endswith(" s")
    shas = [demo().graph.shas[commit][:12] for commit in (demo().graph.good, demo().graph.bad)]
    assert rows[0].startswith(shas[0]) and rows[0].endswith("good")
    bad = next(row for row in rows if row.startswith(shas[1]))
    assert bad.endswith("bad")
    assert min(i for i, c in enumerate(rows[0]) if c in "·•●") == 14  # the least value, at the left
    assert max(i for i, c in enumerate(bad) if c in "·•●") > 40
    assert all(len(row) <= 70 for row in rows)


def test_samples_of_one_commit_or_of_one_value_are_no_picture() -> None:
    material = demo()
    assert pictures.strip(dataclasses.replace(material, records=[]), 70) == []


def test_suspects_are_shown_until_there_is_a_conclusion() -> None:
    decided = Measure(2, 1, "search", "why", suspects=((2, 0.9),))
    material = dataclasses.replace(demo(), decisions=[(99, decided)])
    assert not any("may be" in line for line in pictures.section(material, 70))
    unfinished = dataclasses.replace(material, conclusion=None)
    assert any(line.startswith(" 90% ███") for line in pictures.section(unfinished, 70))


def test_a_series_is_drawn_from_its_least_to_its_largest_value() -> None:
    assert pictures.sparkline([1, 2, 3, 8]) == "▁▂▃█"
    assert pictures.sparkline([5, 5]) == "▁▁"
    assert pictures.sparkline([]) == ""
    long = pictures.sparkline([0.0] * 60 + [1.0] * 60, cells=4)
    assert long == "▁▁██"


def test_a_terminal_without_these_characters_gets_ascii() -> None:
    assert pictures.in_characters_of("utf-8", ["█▌·●"]) == ["█▌·●"]
    assert pictures.in_characters_of("ascii", ["█▌▏·●"]) == ["## .O"]
    assert pictures.in_characters_of(None, ["•"]) == ["o"]
    assert pictures.in_characters_of("ascii", ["▁▄█"]) == ["_.#"]


def test_a_picture_of_several_testbeds_has_the_older_end_at_one_level() -> None:
    _, *rows = pictures.strip(two_levels(), 90)
    assert [row.split("  ")[-2:] for row in rows[:1]] == [["6 runs", "good"]]
    places = [{i for i, c in enumerate(row) if c in "·•●"} for row in rows]
    assert all(len(one) == 1 for one in places), "each commit reads one value"
    assert places[0] == places[1] != places[2] == places[3]
