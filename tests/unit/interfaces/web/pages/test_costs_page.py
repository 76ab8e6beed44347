"""Which bisections the page of costs adds up, and how they are grouped."""

from __future__ import annotations

import re
from dataclasses import replace

import httpx
import pytest

from bisector.app.wiring import Wiring
from bisector.interfaces.web.pages import costs_page
from bisector.model.records import Booted, Built, Ran
from tests.support.pages.shown_pages import rows_of, words
from tests.support.report_material import sixty_boots
from tests.support.servers import served_lab

AGES = {"today": 0.5, "last-week": 5.0, "last-month": 29.5, "before": 30.5}
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


def test_what_the_page_says_is_what_programs_read(client: httpx.Client, lab: Wiring) -> None:
    hour = round((lab.coordinator.now() - 400 * 86400 - 1.79e9) / 3600)
    nothing = replace(sixty_boots(boots=12), conclusion=None)
    own = "/srv/workloads/mine"
    served_lab.store(lab, nothing, "cancelled", own, hour, name="in-vain", owner="carl@lab")
    found = client.get("/costs.json?days=3650").json()
    text = client.get("/costs?days=3650").text
    assert 'name="days" value="3650"' in text
    assert found["total"]["culprits"] < found["total"]["bisections"]

    def hours(value: float | None) -> str:
        return "none found" if value is None else f"{value:.1f}"

    def numbers(row: dict[str, float | None]) -> tuple[str, ...]:
        kinds = ("build_hours", "machine_hours", "machine_hours_a_culprit")
        return (str(row["bisections"]), str(row["culprits"]), *(hours(row[kind]) for kind in kinds))

    shown = {
        (kind, *list(row.values())[:1]): tuple(row.values())[1:]
        for kind in ("owner", "workload")
        for row in rows_of(text, f"By {kind}")
    }
    assert shown == {(row["group"], row["name"]): numbers(row) for row in found["groups"]}
    assert {numbers(row)[-1] for row in found["groups"]} > {"none found"}
    tiles = words(text.partition('aria-label="Numbers"')[2].partition("</ul>")[0])
    _, culprits, _, machine, each = numbers(found["total"])
    assert tiles.endswith(f"{machine} machine hours {culprits} culprits {each} machine hours a culprit")
    assert "No bisection of a series began in that time." in text
    assert ("workload", "mine") in shown, "one's own workload, by its folder"
    of = {row["Bisection"]: row["Workload"] for row in rows_of(text, "The most expensive ones")}
    assert (of["in-vain"], of["last-week"]) == ("mine", "w")
    heads = list(rows_of(text, "By owner")[0])
    assert heads == [
        "Owner",
        "Bisections",
        "Culprits",
        "Build hours",
        "Machine hours",
        "Machine hours a culprit",
    ]


def test_the_most_expensive_are_told_with_whose_they_are_and_what_they_found(
    client: httpx.Client, lab: Wiring
) -> None:
    (row,) = [
        row
        for row in rows_of(client.get("/costs").text, "The most expensive ones")
        if row["Bisection"] == "last-week"
    ]
    records = [record for _, record in lab.store.records("last-week")]
    built = sum(record.seconds for record in records if isinstance(record, Built)) / 3600
    used = sum(record.seconds for record in records if isinstance(record, Booted | Ran)) / 3600
    assert f"{built:.1f}" != f"{used:.1f}"
    assert row == {
        "Bisection": "last-week",
        "Status": "done",
        "Workload": "w",
        "Owner": "bob@lab",
        "Build hours": f"{built:.1f}",
        "Machine hours": f"{used:.1f}",
        "Culprits": "1",
    }
