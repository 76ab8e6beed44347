"""Commits that a bisection measured, compared: what counts as a sample, sizes, and how machines were set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisector.app import load_report
from bisector.app.operations.measurement_values import samples_from, samples_to_json
from bisector.interfaces.cli import run
from bisector.model.facts import MonitorResult, MonitorValue
from bisector.model.records import Booted, Discarded, Left, Ran, Record
from bisector.report import stored_samples
from bisector.report.report_model import Material
from bisector.stats.samples import SampleSeries
from tests.support.report_material import METRIC, demo


def test_boots_apart_without_warm_ups_and_discarded_boots() -> None:
    (found,) = stored_samples.sets(demo(), 3, "rt-03", {"real": METRIC})
    boots = [[round(v, 6) for v in boot] for boot in found.series["real"].boots]
    assert boots == [[0.18901, 0.18903], [0.18903, 0.18905]]
    assert (found.series["real"].unit, found.series["real"].better) == ("s", "lower")
    (parent,) = stored_samples.sets(demo(), 2, "rt-02", {"real": METRIC})
    assert len(parent.series["real"].boots) == 1  # the other boot was thrown away
    assert stored_samples.sets(demo(), 1, "rt-01", {}) == []


def test_flagged_runs_are_no_samples() -> None:
    material = demo()
    records = [
        (
            n,
            replace(r, flags=("stall",)) if isinstance(r, Ran) and r.boot == "b4" and r.index == 1 else r,
        )
        for n, r in material.records
    ]
    (found,) = stored_samples.sets(replace(material, records=records), 3, "rt-03", {})
    assert found.series["real"].boots[0] == (0.18903,)


def test_samples_know_whose_caches_were_modelled() -> None:
    (found,) = stored_samples.sets(replace(demo(), modelled="a Skylake"), 3, "rt-03", {"real": METRIC})
    assert found.modelled == "a Skylake"
    assert samples_from(samples_to_json([found])) == [found]
    (found,) = stored_samples.sets(demo(), 3, "rt-03", {"real": METRIC})
    assert found.modelled == ""


def test_counters_of_several_boots_are_boots_and_of_one_have_the_error_of_perf() -> None:
    """What boots differ by is not in perf's +-: with it equal kernels differed 92 times in 100."""
    counts = {"b1": 100.0, "b2": 108.0, "b3": 92.0}
    records: list[Record] = []
    for boot, value in counts.items():
        seen = (MonitorValue("cycles", value, "", 0.002),)
        monitors = (MonitorResult("perf-stat", seen=seen),)
        records += [Booted(boot, 0, "t", True, 1.0, 1e9), Ran(boot, 0, {"real": 1.0}, 1.0, 1e9)]
        records.append(Left(boot, monitors=monitors))

    def cycles(*more: Record) -> SampleSeries:
        material = replace(demo(), records=list(enumerate([*records, *more])))
        (found,) = stored_samples.sets(material, 0, "a", {})
        return found.series["perf-stat/cycles"]

    assert cycles() == SampleSeries(((100.0,), (108.0,), (92.0,)))
    left = cycles(Discarded("boot", "b2"), Discarded("boot", "b3"))
    assert left == SampleSeries(((100.0,),), error=0.002)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, own_folders: Path) -> Material:
    material = demo()
    keep(monkeypatch, material)
    return material


def keep(monkeypatch: pytest.MonkeyPatch, material: Material) -> None:
    """Have commands read this material, whatever bisection they name."""
    names = {"rt-00": 0, "rt-02": 2, "rt-03": 3, "rt-04": 4, "rt-01": 1}
    monkeypatch.setattr(load_report, "find_bisection", lambda _, wanted: None)
    monkeypatch.setattr(load_report, "load_material", lambda *_, **__: material)
    monkeypatch.setattr(load_report, "commit_index", lambda _settings, _material, rev: names[rev])


@pytest.mark.usefixtures("kept")
def test_commits_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "rt-00", "rt-04", "b-1:rt-03"]) == 0
    out = capsys.readouterr().out
    assert "rt-00 -> rt-04" in out
    assert "rt-00 -> rt-03" in out
    assert "slower" in out
    told = " ".join(out.split())
    assert "rt-04: its machine was set otherwise than rt-00's: realtime: absent -> 1" in told
    assert "memory.total" not in told  # moves by some pages with every build


@pytest.mark.usefixtures("kept")
def test_a_commit_that_was_not_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "rt-00", "b-1:rt-01"]) == 1
    assert "rt-01 has not been measured in the bisection b-1" in capsys.readouterr().err


def test_several_testbeds_stay_apart() -> None:
    material = demo()
    moved = {b.boot for _, b in material.records if isinstance(b, Booted) and b.purpose == "certify"}
    records = [
        (n, replace(r, testbed="other") if isinstance(r, Booted) and r.boot in moved else r)
        for n, r in material.records
    ]
    found = stored_samples.sets(replace(material, records=records), 3, "rt-03", {})
    assert [(s.testbed, len(s.series["real"].boots)) for s in found] == [("laptop-icount", 1), ("other", 1)]
    assert all(s.facts["realtime"] == "1" for s in found)


def test_commits_that_were_measured_on_different_testbeds_do_not_compare(
    monkeypatch: pytest.MonkeyPatch, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The good end ran on two testbeds, each other commit on one of them."""
    boots = [("rt", 0, "x", 100.0), ("rt", 0, "y", 200.0), ("rt", 3, "x", 110.0), ("rt", 4, "y", 210.0)]
    records: list[Record] = []
    for k, (name, commit, testbed, level) in enumerate(boots * 4):
        boot = f"{name}{k}"
        records.append(Booted(boot, commit, testbed, True, 1.0, 1e9))
        records += [Ran(boot, run, {"real": level + run + k % 3}, 1.0, 1e9) for run in range(3)]
        records.append(Left(boot))
    keep(monkeypatch, replace(demo(), records=list(enumerate(records))))
    assert run(["compare", "rt-03", "rt-04"]) == 1
    told = capsys.readouterr().err
    assert "there is no metric that two of the sets have in common on one testbed (x, y)" in told
    for newer, worse in (("rt-03", "+10."), ("rt-04", "+5.")):
        assert run(["compare", "rt-00", newer]) == 0
        assert worse in capsys.readouterr().out
    (own_folders / "before.txt").write_text("".join(f"real: {100 + k % 3}\n" for k in range(6)))
    assert run(["compare", str(own_folders / "before.txt"), "rt-03"]) == 0  # of which machine nobody has said
    assert "slower" in capsys.readouterr().out
