"""Whose boots, checks and reservations the page of a testbed shows, and in which order."""

from __future__ import annotations

import re
from dataclasses import replace

import httpx
import pytest

from bisector.app.execution.health_check import health_store
from bisector.app.wiring import Wiring
from bisector.interfaces.web.pages import testbed_pages
from bisector.model.records import Booted, RunFailed
from tests.support.report_material import sixty_boots
from tests.support.servers import served_lab


def section(text: str, name: str) -> str:
    return text.partition(f'id="{name}-heading"')[2].partition("</section>")[0]


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
    listed = re.findall(r"<td[^>]*>(first|second|third)</td>", text)
    assert listed == ["third", "second"]
    assert re.findall(r": sound; (\w+)<", text) == ["second", "third"], "the latest are drawn"
    assert len(re.findall('<th [^>]*scope="row"', section(text, "boots"))) == 2
    assert len(client.get("/testbeds/machine-a.json").json()["checks"]) == 24


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
