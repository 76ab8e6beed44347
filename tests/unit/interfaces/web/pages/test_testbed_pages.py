"""Whose boots, checks and reservations the page of a testbed shows, and why it is not in use."""

from __future__ import annotations

import re
from dataclasses import replace

import httpx
import pytest

from bisector.app.execution.health_check import health_store
from bisector.app.operations.local_operations import LocalOperations
from bisector.app.wiring import Wiring
from bisector.interfaces.web.pages import testbed_pages
from bisector.model.records import Booted, RunFailed
from bisector.report import phrases
from tests.support.pages.shown_pages import forms_of, kind_of, lead_of, rows_of, words
from tests.support.report_material import sixty_boots
from tests.support.servers import served_lab


def section(text: str, name: str) -> str:
    return text.partition(f'id="{name}-heading"')[2].partition("</section>")[0]


SICK = served_lab.SAID.format("its level moved")


def test_a_row_says_which_testbed_is_out_why_and_whose(client: httpx.Client, lab: Wiring) -> None:
    coordinator = lab.coordinator
    later = coordinator.now() + 3600.0
    coordinator.reserve(served_lab.TESTBEDS[2], "ann@lab", later + 3600.0, later)
    status = next(s for s in coordinator.testbeds() if s.name == "machine-a")
    sick, held, kept = rows_of(client.get("/testbeds").text, "Testbeds")
    assert sick == {
        "Testbed": "machine-a",
        "State": "suspect",
        "Why": sick["Why"],
        "Reserved": "",
        "Used by": "",
        "Worker": "",
    }
    assert sick["Why"].replace(" )", ")") == f"{SICK} (a health check, {phrases.date(status.since)})"
    assert (held["State"], held["Why"]) == ("good", "")
    (taken,) = [r for r in coordinator.reservations() if r.testbed == "machine-b"]
    assert held["Reserved"] == f"bob@lab, until {phrases.date(taken.end)}"
    assert kept["Reserved"] == f"ann@lab, from {phrases.date(later)} until {phrases.date(later + 3600.0)}"


def test_who_uses_a_testbed_is_named(
    client: httpx.Client, lab: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {**client.get("/testbeds/machine-b.json").json(), "used_by": "running-1", "worker": "rack1"}
    monkeypatch.setattr(LocalOperations, "testbeds", lambda own: {"testbeds": [row], "now": 0.0})
    (shown,) = rows_of(client.get("/testbeds").text, "Testbeds")
    assert (shown["Used by"], shown["Worker"]) == ("running-1", "rack1")
    text = words(client.get("/testbeds/machine-b").text)
    assert "Worker rack1. Used by running-1 ." in text and "No bisection uses it now." not in text


def test_the_page_of_a_testbed_says_why_it_is_out_and_since_when(client: httpx.Client, lab: Wiring) -> None:
    text = client.get("/testbeds/machine-a").text
    assert (kind_of(text), lead_of(text)) == ("testbed suspect", SICK)
    status = next(s for s in lab.coordinator.testbeds() if s.name == "machine-a")
    said = f"Said by a health check, {phrases.date(status.since)} . No bisection uses it now."
    assert said in words(text)
    assert "Nobody has reserved it." in text
    newest = rows_of(text, "Health checks")[0]
    assert (newest["Outcome"], newest["What was found"]) == ("failed", served_lab.SAID.format("no boot"))
    text = client.get("/testbeds/machine-b").text
    assert (kind_of(text), lead_of(text)) == ("testbed good", "") and "Said by" not in text
    assert "No health check has been made here." in text
    (row,) = rows_of(text, "Reservations")
    (taken,) = [r for r in lab.coordinator.reservations() if r.testbed == "machine-b"]
    assert row == {"Who": "bob@lab", "From": phrases.date(taken.start), "Until": phrases.date(taken.end)}


def test_a_row_of_a_boot_says_what_it_was_for_and_how_it_failed(client: httpx.Client) -> None:
    boots = client.get("/testbeds/machine-b.json").json()["boots"]
    shown = rows_of(section(client.get("/testbeds/machine-b").text, "boots"), "Boots")
    assert [tuple(row.values()) for row in shown] == [
        (
            phrases.date(boot["at"]),
            boot["bisection"],
            boot["boot"],
            boot["purpose"],
            f"{boot['seconds']:.1f}",
            boot["failure"],
        )
        for boot in boots
    ]
    assert all(boot["seconds"] > 0 and boot["purpose"] for boot in boots)


def test_who_may_only_look_is_offered_no_form(client: httpx.Client, as_reader: dict[str, str]) -> None:
    page = "/testbeds/machine-b"
    assert forms_of(client.get(page).text) == {f"{page}/state", f"{page}/reservations"}
    assert forms_of(client.get(page, headers=as_reader).text) == set()


def test_a_form_does_what_it_says(client: httpx.Client, lab: Wiring) -> None:
    page = f"/testbeds/{served_lab.TESTBEDS[2]}"
    sent = {"state": "maintenance", "reason": "new memory", "next": "/testbeds"}
    assert client.post(f"{page}/state", data=sent).headers["location"] == "/testbeds"
    (status,) = [s for s in lab.coordinator.testbeds() if s.name == served_lab.TESTBEDS[2]]
    assert (status.state, status.reason, status.by) == ("maintenance", "new memory", "operate")
    begin = lab.coordinator.now() + 86400.0
    assert client.post(f"{page}/reservations", data={"hours": "3", "wait": "24"}).status_code == 303
    made = max(lab.coordinator.reservations(), key=lambda one: one.start)
    assert (made.testbed, made.who) == (served_lab.TESTBEDS[2], "operate")
    assert made.start == pytest.approx(begin, abs=60) and made.end - made.start == pytest.approx(10800.0)


def test_boots_are_those_of_the_testbed_the_latest_first(client: httpx.Client) -> None:
    boots = client.get("/testbeds/machine-b.json").json()["boots"]
    assert {boot["bisection"] for boot in boots} == {f"{status}-1" for status in served_lab.STATUSES[1:]}
    own = [boot["boot"] for boot in boots if boot["bisection"] == "paused-1"]
    assert own == ["boot-failed-machine-b", "boot-3", "boot-2", "boot-1", "boot-0"]
    assert [boot["at"] for boot in boots] == sorted((boot["at"] for boot in boots), reverse=True)
    assert {boot["failure"] for boot in boots} == {"", "sched: rework number console"}
    assert client.get(f"/testbeds/{served_lab.TESTBEDS[2]}.json").json()["boots"] == []


def test_bisections_that_did_not_boot_it_hide_no_other(
    client: httpx.Client, lab: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        material = sixty_boots(boots=6)
        material = replace(material, records=[], decisions=[], conclusion=None)
        served_lab.store(lab, material, "cancelled", "w", 50 + number, name=f"empty-{number}")
    monkeypatch.setattr(served_lab, "TESTBEDS", ("elsewhere",))
    for number in range(5):
        served_lab.store(lab, sixty_boots(boots=6), "done", "w", 60 + number, name=f"elsewhere-{number}")
    assert len(client.get("/testbeds/machine-b.json").json()["boots"]) > 20


def test_a_boot_whose_runs_failed_is_a_failure(client: httpx.Client, lab: Wiring) -> None:
    lab.store.append("paused-1", Booted("late", 3, "machine-b", True, 9.0, 1.8e9))
    lab.store.append("paused-1", RunFailed("late", "the workload crashed"))
    (late,) = [b for b in client.get("/testbeds/machine-b.json").json()["boots"] if b["boot"] == "late"]
    assert late["failure"] == "the workload crashed"
    failures = section(client.get("/testbeds/machine-b").text, "failures")
    assert failures.count("the workload crashed") == 1 and "boot-0" not in failures


def test_checks_are_drawn_of_one_kernel_and_listed_the_latest_first(
    client: httpx.Client, lab: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "are left out" not in client.get("/testbeds/machine-a").text
    kernel = {"commit": "d" * 40, "workload": "other", "metric": "n", "unit": ""}
    for word in ("first", "second", "third"):
        health_store(lab).add_point("machine-a", kernel, "sound", word, [5.0, 6.0])
    text = client.get("/testbeds/machine-a").text
    assert "21 older boots, or of other kernels, are left out." in text
    assert "Kernel dddddddddddd, workload other." in text
    monkeypatch.setattr(testbed_pages, "_CHECKS", 2)
    monkeypatch.setattr(testbed_pages, "_BOOTS", 2)
    text = client.get("/testbeds/machine-a").text
    assert "22 older boots" in text
    of_list = {**kernel, "commit": "6.1.0-53-cloud-amd64@17c0"}
    health_store(lab).add_point("machine-b", of_list, "sound", "first", [5.0, 6.0])
    page = client.get("/testbeds/machine-b").text
    assert "Kernel 6.1.0-53-cloud-amd64, workload other." in page, "whole, where others begin the same"
    listed = re.findall(r"<td[^>]*>(first|second|third)</td>", text)
    assert listed == ["third", "second"]
    assert re.findall(r": sound; (\w+)<", text) == ["second", "third"], "the latest are drawn"
    assert len(re.findall('<th [^>]*scope="row"', section(text, "boots"))) == 2
    assert len(client.get("/testbeds/machine-a.json").json()["checks"]) == 24


def test_checks_that_have_all_failed_are_listed_at_once(client: httpx.Client, lab: Wiring) -> None:
    name = served_lab.TESTBEDS[2]
    kernel = {"commit": "d" * 40, "workload": "other", "metric": "n", "unit": ""}
    health_store(lab).add_point(name, kernel, "failed", "no answer", [])
    text = client.get(f"/testbeds/{name}").text
    assert "<details open><summary>The latest checks" in text and "<svg" not in section(text, "reference")
    assert "<details><summary>The latest checks" in client.get("/testbeds/machine-a").text


def test_reservations_are_those_of_the_testbed(client: httpx.Client) -> None:
    assert client.get("/testbeds/machine-a.json").json()["reservations"] == []
    (held,) = client.get("/testbeds/machine-b.json").json()["reservations"]
    assert held["who"] == "bob@lab" and round(held["until"] - held["from"]) == 7200


def test_a_form_offers_other_states_than_the_present_one(client: httpx.Client) -> None:
    def offered(name: str) -> list[str]:
        choice = client.get(f"/testbeds/{name}").text.partition('name="state"')[2].partition("</select>")[0]
        return re.findall('value="([a-z]+)"', choice)

    assert offered("machine-b") == ["maintenance", "retired"]
    assert offered("machine-a") == ["good", "maintenance", "retired"], "it is suspect"


def test_an_unknown_testbed_has_the_nearest_name(client: httpx.Client) -> None:
    answer = client.get("/testbeds/machin-a.json")
    assert answer.status_code == 404 and "did you mean 'machine-a'" in answer.json()["detail"]
