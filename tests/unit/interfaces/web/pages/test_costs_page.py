"""Which bisections the page of costs adds up, and how they are grouped."""

from __future__ import annotations

import re

import httpx
import pytest

from bisector.app.wiring import Wiring
from bisector.interfaces.web.pages import costs_page
from bisector.model.records import Booted, Built, Ran
from tests.support.report_material import sixty_boots
from tests.support.servers import served_lab

AGES = {"today": 0.5, "last-week": 5.0, "last-month": 29.5, "before": 31.0}
"""Bisections, and how many days ago each began."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Wiring:
    wiring = served_lab.make(tmp_path_factory.mktemp("lab"), boots=6)
    for boots, (name, days) in enumerate(AGES.items(), start=8):  # eight have built all kernels
        hours = round((wiring.coordinator.now() - days * 86400 - 1.79e9) / 3600)
        owner = "" if name == "today" else "bob@lab"
        served_lab.store(wiring, sixty_boots(boots=boots), "done", "w", hours, name=name, owner=owner)
    return wiring


def shown(text: str) -> list[str]:
    return re.findall(r'<th [^>]*scope="row"><a href="/bisections/([^"]+)"', text)


@pytest.mark.parametrize(("asked", "count"), [("?days=1", 1), ("?days=7", 2), ("", 3), ("?days=32", 4)])
def test_those_of_the_last_days_are_added_up(client: httpx.Client, asked: str, count: int) -> None:
    found = client.get(f"/costs.json{asked}").json()
    assert (found["counted"], found["of"], found["total"]["bisections"]) == (count, count, count)
    assert sorted(shown(client.get(f"/costs{asked}").text)) == sorted([*AGES][:count])


def test_the_most_expensive_come_first(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(client.get("/costs").text) == ["last-month", "last-week", "today"]
    monkeypatch.setattr(costs_page, "_DEAREST", 2)
    assert shown(client.get("/costs").text) == ["last-month", "last-week"]


def test_the_latest_of_very_many_are_added_up(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "are added up" not in client.get("/costs").text
    monkeypatch.setattr(costs_page, "_MOST_BISECTIONS", 2)
    found = client.get("/costs.json").json()
    assert (found["counted"], found["of"]) == (2, 3)
    text = client.get("/costs").text
    assert "Only the latest 2 of 3 bisections are added up." in text
    assert sorted(shown(text)) == ["last-week", "today"]


def test_owners_have_groups_also_where_none_is_known(client: httpx.Client) -> None:
    rows = client.get("/costs.json").json()["groups"]
    owners = {row["name"]: row for row in rows if row["group"] == "owner"}
    assert {name: row["bisections"] for name, row in owners.items()} == {"unknown": 1, "bob@lab": 2}
    records = [record for _, record in sixty_boots(boots=8).records]
    built = sum(record.seconds for record in records if isinstance(record, Built))
    used = sum(record.seconds for record in records if isinstance(record, Booted | Ran))
    assert owners["unknown"]["build_hours"] == pytest.approx(built / 3600)
    assert owners["unknown"]["machine_hours"] == pytest.approx(used / 3600)


@pytest.mark.parametrize("days", ["0", "3651", "x"])
def test_days_that_make_no_sense_are_refused(client: httpx.Client, days: str) -> None:
    answer = client.get(f"/costs.json?days={days}")
    assert answer.status_code == 400 and answer.json()["detail"].startswith("days: must be ")
