"""From a suspect to a culprit with the real planner, executor and store; lab and history are fakes.

It is the `alert_context` of a real wiring, and the chore that whoever executes has.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.store.series.sql_series import SqlSeries
from bisector.app.alerts.alert_context import alert_context
from bisector.app.alerts.suspects import confirmation_ended, suspect_found
from bisector.app.wiring import Wiring
from bisector.interfaces.cli import run
from bisector.schemas.settings import load_settings
from tests.support import fake_bisection as fake
from tests.support.command_line import Bench, said
from tests.support.machines.fake_inventory import inventory_of
from tests.support.series.alert_lab import a_series, found


def test_a_confirmed_suspect_is_bisected_by_whoever_executes(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = tmp_path / "lab.yml"
    lab.write_text(inventory_of("fake"))
    monkeypatch.setenv("PERFBISECT_LAB", str(lab))
    wiring = Wiring(load_settings())
    SqlSeries(wiring.database).add(a_series())
    shas = bench.lab.graph.shas
    suspect = found(0, 0, last_good=shas[0], first_bad=shas[-1])
    context = alert_context(wiring)
    alert = suspect_found(context, suspect, "three nights")
    begun = confirmation_ended(context, alert.id, "confirmed", None, shas[-1], "8 and 8 boots")
    assert begun.finding == "bisecting"
    (row,) = json.loads(said(capsys, "list", "--json"))
    assert (row["id"], row["owner"], row["status"]) == (begun.bisection, "series nightly", "queued")
    assert run(["worker", "--until-idle"]) == 0
    capsys.readouterr()
    (listed,) = json.loads(said(capsys, "alert", "list", "--json"))
    assert (listed["state"], listed["culprits"]) == ("culprit", [shas[fake.CULPRIT]])
    assert listed["subject"] == f"fake: change number {fake.CULPRIT}"
    shown = said(capsys, "alert", "show", alert.id[:6])
    assert "last good" in shown and "first bad" in shown
    for words in ("three nights", "8 and 8 boots", begun.bisection, shas[fake.CULPRIT]):
        assert words in shown
    better = suspect_found(context, replace(suspect, direction="improvement"), "three nights")
    shown = said(capsys, "alert", "show", better.id)
    assert "first better  " + shas[-1] in shown and "bad" not in shown


def test_ranges_are_those_of_the_repository_and_none_where_it_has_lost_them(
    bench: Bench, tmp_path: Path
) -> None:
    shas = bench.lab.graph.shas
    commits = alert_context(Wiring(load_settings())).commits
    assert commits("/fake", shas[0], shas[-1]) == frozenset(shas[1:])
    assert commits("/fake", "a" * 40, shas[-1]) == frozenset()
