"""Two commits are compared anew when one of their bisections has changed, and not otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisector.app import load_report
from bisector.app.wiring import Wiring
from bisector.errors import RequestError
from bisector.interfaces.web.pages import kept_comparisons
from bisector.interfaces.web.pages.kept_comparisons import KeptComparisons
from bisector.interfaces.web.problems import Refused
from bisector.interfaces.web.request_slots import Slots
from bisector.model.records import Booted, Ran
from tests.support.report_material import METRIC, sixty_boots
from tests.support.servers import served_lab

NAMES = ("done-1:v6.1", "paused-1:v6.1")
PLACES = (("done-1", "v6.1"), ("paused-1", "v6.1"))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Wiring:
    return served_lab.make(tmp_path_factory.mktemp("lab"), boots=48)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The bisections whose records were read."""
    found: list[str] = []
    load = load_report.load_material

    def counted(wiring: Wiring, identity: str) -> object:
        found.append(identity)
        return load(wiring, identity)

    monkeypatch.setattr(load_report, "load_material", counted)
    return found


def test_it_is_made_anew_once_a_bisection_has_changed(lab: Wiring, read: list[str]) -> None:
    kept = KeptComparisons(Slots("plans and files", 1, 1))
    first = kept.find(lab, PLACES, NAMES)
    assert first.names == NAMES and "done-1:v6.1" in first.sections
    assert kept.find(lab, PLACES, NAMES) is first
    assert read == ["done-1", "paused-1"]
    lab.store.append("paused-1", Ran("boot-0", 40, {METRIC.name: 61.5}, 2.0, 1.8e9))
    second = kept.find(lab, PLACES, NAMES)
    assert second.values != first.values
    lab.store.set_status("paused-1", "queued")
    assert kept.find(lab, PLACES, NAMES) is not second


def test_the_records_of_one_bisection_are_read_once(lab: Wiring, read: list[str]) -> None:
    kept = KeptComparisons(Slots("plans and files", 1, 1))
    kept.find(lab, (("done-1", "v6.1"), ("done-1", "v6.2")), ("a", "b"))
    assert read == ["done-1"]


def test_a_name_that_moves_names_another_comparison(
    lab: Wiring, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptComparisons(Slots("plans and files", 1, 1))
    places = (("done-1", "branch"), ("done-1", "v6.2"))
    graph = lab.store.load("done-1").graph
    tip = graph.good
    monkeypatch.setattr(load_report, "find_commit", lambda *a: tip if a[-1] == "branch" else graph.bad)
    first = kept.find(lab, places, NAMES)
    tip = 16
    assert kept.find(lab, places, NAMES).values != first.values


def test_what_is_kept_needs_no_slot_and_what_nobody_looks_at_is_forgotten(
    lab: Wiring, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_comparisons, "_MOST_KEPT", 1)
    slots = Slots("plans and files", 1, 1)
    kept = KeptComparisons(slots)
    first = kept.find(lab, PLACES, NAMES)
    with slots.one("another"):
        assert kept.find(lab, PLACES, NAMES) is first
        with pytest.raises(Refused, match="busy with plans and files"):
            kept.find(lab, PLACES[::-1], NAMES[::-1])
    kept.find(lab, PLACES[::-1], NAMES[::-1])
    assert kept.find(lab, PLACES, NAMES) is not first
    monkeypatch.setattr(kept_comparisons, "_MOST_KEPT", 2)
    first = kept.find(lab, PLACES, NAMES)
    kept.find(lab, PLACES[::-1], NAMES[::-1])
    kept.find(lab, PLACES, NAMES)
    kept.find(lab, PLACES, ("another", "name"))
    assert kept.find(lab, PLACES, NAMES) is first, "the other one was looked at longest ago"


def test_each_user_has_slots_of_their_own(lab: Wiring) -> None:
    slots = Slots("plans and files", 2, 1)
    kept = KeptComparisons(slots)
    with slots.one(lab.settings.owner), pytest.raises(Refused):
        kept.find(lab, PLACES, NAMES)
    with slots.one("another"):
        assert kept.find(lab, PLACES, NAMES).names == NAMES


def test_how_often_a_claim_may_be_wrong_is_the_servers_setting(lab: Wiring) -> None:
    strict = Wiring(lab.settings.model_copy(update={"alpha": 0.001}))
    found = [KeptComparisons(Slots("", 1, 1)).find(w, PLACES, NAMES).values for w in (lab, strict)]
    assert [values["alpha"] for values in found] == [0.05, 0.001]


def test_boots_under_other_firmware_are_not_compared(lab: Wiring) -> None:
    material = sixty_boots(boots=12)
    records = [
        (n, replace(r, facts={**r.facts, "cpu.microcode": "0x2f"}) if isinstance(r, Booted) else r)
        for n, r in material.records
    ]
    served_lab.store(lab, replace(material, records=records), "done", "{}", 70, name="updated-1")
    older = [
        (n, replace(r, facts={**r.facts, "cpu.microcode": "0x2e"}) if isinstance(r, Booted) else r)
        for n, r in material.records
    ]
    served_lab.store(lab, replace(material, records=older), "done", "{}", 71, name="before-1")
    places = (("before-1", "v6.1"), ("updated-1", "v6.1"))
    with pytest.raises(RequestError, match="they do not compare"):
        KeptComparisons(Slots("", 1, 1)).find(lab, places, ("before", "updated"))


def test_a_commit_that_was_not_measured_is_an_error_each_time(lab: Wiring) -> None:
    kept = KeptComparisons(Slots("plans and files", 1, 1))
    sha = lab.store.load("done-1").graph.shas[3]
    for _ in range(2):
        with pytest.raises(RequestError, match="has not been measured"):
            kept.find(lab, (("done-1", sha), ("done-1", "v6.2")), NAMES)
