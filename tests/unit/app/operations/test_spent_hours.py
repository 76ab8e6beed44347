"""What bisections cost, by groups."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisector.app.operations.spent_hours import SpentHours, SpentTotals, added_up
from bisector.model.decisions import Ending
from bisector.model.records import Ran
from bisector.testing.fakes import METRIC
from tests.support.fake_bisection import store_bisections


def test_hours_are_those_of_its_records_and_of_one_that_has_ended_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, hours = store_bisections(tmp_path, monkeypatch), SpentHours()
    (new,) = store.list(beginning="fake-new")
    assert hours.of(store, new) == SpentTotals(1, 0, 60 / 3600, 14 / 3600)
    store.append("fake-new", Ran("boot-001", 2, {METRIC: 1.0}, 10.0, 106.0))
    assert hours.of(store, new).machine == pytest.approx(24 / 3600)
    store.set_status("fake-new", "cancelled")
    (ended,) = store.list(beginning="fake-new")
    assert hours.of(store, ended).machine == pytest.approx(24 / 3600)
    monkeypatch.setattr(store, "seconds_spent", lambda bisection: pytest.fail("it was read again"))
    assert hours.of(store, ended).machine == pytest.approx(24 / 3600)


def test_only_single_proven_commits_are_culprits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, hours = store_bisections(tmp_path, monkeypatch), SpentHours()
    (one,) = store.list(beginning="fake-new")
    counted = {
        ending
        for ending in (*Ending, None)
        if hours.of(store, replace(one, ending=ending, culprits=("a", "b"))).culprits == 2
    }
    assert counted == {Ending.CULPRIT, Ending.CULPRITS, Ending.FIX, Ending.FIXES}


def test_groups_are_added_up_the_most_expensive_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    store = store_bisections(tmp_path, monkeypatch)
    (one,) = store.list(beginning="fake-new")
    costs = [
        (replace(one, owner="ann"), SpentTotals(1, 1, 0.5, 1.0)),
        (replace(one, owner="bob"), SpentTotals(1, 0, 0.0, 5.0)),
        (replace(one, owner="ann"), SpentTotals(1, 1, 0.0, 2.0)),
    ]
    found = added_up(costs, lambda one: one.owner)
    assert found == [("bob", SpentTotals(1, 0, 0.0, 5.0)), ("ann", SpentTotals(2, 2, 0.5, 3.0))]
    assert [spent.hours_a_culprit for _, spent in found] == [None, 1.5]
