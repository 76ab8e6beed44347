"""What the page of a series says of its nights, and which of them it lists."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from typing import get_args

import httpx
import pytest

from bisector.app.alerts.alert_context import open_alerts
from bisector.app.operations.local_operations import LocalOperations
from bisector.app.series.series_store import series_store
from bisector.app.series.show_series import show_series
from bisector.app.wiring import Wiring
from bisector.interfaces.web.pages import series_pages
from bisector.model.access import Role
from bisector.model.alerts import HistoryEntry
from bisector.model.decisions import Interval
from bisector.model.goal import Threshold
from bisector.model.series import Night, NightVerdict, Point, VerdictStatus
from bisector.report import phrases
from bisector.schemas.series_request import RemoteSeries
from tests.support.pages.shown_pages import forms_of, kind_of, pairs_of, rows_of, words
from tests.support.report_material import sixty_boots
from tests.support.servers import served_lab

PAGE = f"/series/{served_lab.SERIES}"


def lead(client: httpx.Client, name: str) -> str:
    (said,) = re.findall(r'<p class="lead">([^<]*)</p>', client.get(f"/series/{name}").text)
    return str(said)


def add(
    lab: Wiring, name: str, *nights: NightVerdict | None, bisection: str = "", level: float = 1.0
) -> None:
    """Add a series with one measured night for each verdict. bisection, level: of these nights."""
    store = series_store(lab)
    store.add(replace(store.load(served_lab.SERIES), name=name))
    for number, verdict in enumerate(nights, start=1):
        night = Night(name, number, 1.79e9, float(number), "night", "running", f"{number:040x}", bisection)
        store.add_night(night)
        point = Point(number, f"{number}-0", night.commit, "machine-a", False, (level,), 1.79e9)
        store.end_night(replace(night, state="measured", verdict=verdict), [point])


def test_the_latest_nights_are_listed_the_newest_first(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed() -> list[int]:
        table = client.get(PAGE).text.partition('id="table-heading"')[2].partition("</section>")[0]
        return [int(number) for number in re.findall(r'<th [^>]*scope="row"[^>]*>(\d+)<', table)]

    assert listed() == list(range(40, 0, -1))
    monkeypatch.setattr(series_pages, "_SHOWN", 3)
    assert listed() == [40, 39, 38]


def test_csv_has_a_row_for_each_night_without_the_values_of_its_boots(client: httpx.Client) -> None:
    rows = [*csv.DictReader(io.StringIO(client.get(f"{PAGE}.csv").text))]
    assert [row["number"] for row in rows] == [str(number) for number in range(1, 41)]
    assert {row["boots"] for row in rows} == {"4"} and "verdict" not in rows[0]


def test_alerts_are_those_of_the_series(client: httpx.Client, lab: Wiring) -> None:
    alerts = open_alerts(lab)
    other = replace(alerts.load(served_lab.ALERT), id="f" * 10, series="another", workload="w2")
    alerts.add(other, HistoryEntry("perfbisect", "suspect"))
    assert [row["id"] for row in client.get(f"{PAGE}.json").json()["alerts"]] == [served_lab.ALERT]
    text = client.get(PAGE).text
    drawing = text.partition('id="nights-zoom"')[2].partition("</figure>")[0]
    assert f'href="/alerts/{served_lab.ALERT}"' in drawing and "f" * 10 not in text
    assert [drawing.count(f'class="level {colour}"') for colour in ("old", "new")] == [29, 11]


@pytest.mark.parametrize("status", get_args(VerdictStatus))
def test_each_verdict_has_words(client: httpx.Client, lab: Wiring, status: VerdictStatus) -> None:
    name = f"v-{status.replace(' ', '-')}"
    add(lab, name, NightVerdict("steady", night_sd=0.5), NightVerdict(status), None)
    words = {
        "unmeasured": "The last night has measured nothing.",
        "learning": "Too few nights to know how much one scatters.",
        "steady": "Its level is steady.",
        "suspect": "Its level seems to have moved.",
        "testbed suspect": "The reference kernel has moved, too: the testbed is suspect.",
    }
    assert lead(client, name) == words[status], "by the last night that was judged"


def test_the_scatter_of_a_night_has_its_unit(client: httpx.Client, lab: Wiring) -> None:
    add(lab, "percent", NightVerdict("steady", night_sd=0.0123))
    assert lead(client, "percent") == "Its level is steady. A night scatters by 1.2%."
    material = sixty_boots(boots=6)
    metric = replace(material.goal.metric, threshold=Threshold(0.5, relative=False))
    absolute = replace(material, goal=replace(material.goal, metric=metric))
    served_lab.store(lab, absolute, "done", "w", 50, name="absolute")
    add(lab, "seconds", NightVerdict("steady", night_sd=0.0123), bisection="absolute")
    assert lead(client, "seconds") == "Its level is steady. A night scatters by 0.012 s."
    moved = NightVerdict("suspect", 0.0123, 1, 2, Interval(0.1, 0.2, 0.3))
    add(lab, "moved", NightVerdict("steady"), moved, bisection="absolute")
    newest, _ = rows_of(client.get("/series/moved").text, "Nights")
    assert newest["What is said"] == "suspect: +0.2 s (+0.1 .. +0.3 s) between the nights 1 and 2"
    add(lab, "again", NightVerdict("learning", night_sd=0.0123))
    few = "Too few nights since its level moved or the series began to judge the latest."
    assert lead(client, "again") == f"{few} A night scatters by 1.2%.", "that is known from before"
    add(lab, "exact", NightVerdict("steady", night_sd=0.0))
    assert lead(client, "exact") == "Its level is steady."


def test_a_series_without_a_level_offers_no_older_commits(client: httpx.Client, lab: Wiring) -> None:
    add(lab, "new")
    series_store(lab).add_night(Night("new", 1, 1.79e9, 1.0))
    text = client.get("/series/new").text
    assert "Nothing is known of its level yet." in text and "No night has measured anything yet." in text
    assert "/backfill" not in text and "/static/nights." not in text
    add(lab, "zero", None, level=0.0)
    text = client.get("/series/zero").text
    assert "/backfill" in text and "/static/nights." in text


def test_a_row_says_what_a_series_shows_and_when_it_goes_on(client: httpx.Client, lab: Wiring) -> None:
    store = series_store(lab)
    store.add(replace(store.load(served_lab.SERIES), name="rests", testbed="machine-b"))
    store.set_state("rests", "paused", "holidays")
    series = client.get("/series.json").json()
    rows = {row["Series"]: row for row in rows_of(client.get("/series").text, "Series")}
    assert rows.keys() == {one["name"] for one in series}
    (found,) = [one for one in series if one["name"] == served_lab.SERIES]
    assert rows[served_lab.SERIES] == {
        "Series": served_lab.SERIES,
        "State": "active",
        "Shows": "suspect",
        "Workload": served_lab.SAID.format("w"),
        "Branch": served_lab.SAID.format("branch"),
        "Testbed": "machine-a",
        "Nights": "40",
        "Hours of 7 days": "0.0 of 10",
        "Next": phrases.date(found["next"]),
    }
    assert found["next"] > lab.coordinator.now()
    assert rows["rests"]["State"] == "paused holidays" and rows["rests"]["Testbed"] == "machine-b"
    assert [rows["rests"][head] for head in ("Shows", "Nights", "Next")] == ["", "0", ""]


def test_a_row_of_a_night_says_what_was_measured_and_by_whom(client: httpx.Client, lab: Wiring) -> None:
    add(lab, "rows", NightVerdict("steady"))
    store = series_store(lab)
    night = Night("rows", 2, 1.79e9, 2.0, "night", "running", f"{2:040x}", "done-1")
    store.add_night(night)
    told = replace(night, state="measured", note="only half", confirmation="paused-1", verdict=None)
    boots = [
        Point(2, "a", night.commit, "machine-a", False, (0.0,), 1.79e9),
        Point(2, "b", "c" * 40, "machine-a", True, (0.25,), 1.79e9),
    ]
    store.end_night(told, boots)
    failed = Night("rows", 3, 1.79e9, 3.0, "night", "failed", why="no kernel was built")
    store.add_night(failed)
    newest, last, first = rows_of(client.get("/series/rows").text, "Nights")
    assert last == {
        "Night": "2",
        "Due": phrases.date(1.79e9),
        "State": "measured",
        "Commit": night.commit[:12],
        "Level in s": "0.0000",
        "Reference": "0.25000",
        "Boots": "2",
        "Bisection": "done-1 its confirmation",
        "What is said": last["What is said"],
    }
    assert "only half" in last["What is said"] and first["Reference"] == "", "no boot of the reference"
    assert [newest[head] for head in ("State", "Commit", "Level in s", "Boots")] == ["failed", "", "", "0"]
    assert "no kernel was built" in newest["What is said"]


def test_what_a_series_measures_and_may_cost_is_told(client: httpx.Client, lab: Wiring) -> None:
    page = client.get(PAGE).text
    assert kind_of(page) == "series active suspect"
    shown = {
        "workload": served_lab.SAID.format("w"),
        "branch": served_lab.SAID.format("branch"),
        "repository": "/not/here",
        "testbed": "machine-a",
        "reference": "c" * 40,
        "threshold": "the workload's",
        "when": "0 2 * * * (Europe/Berlin)",
        "boots a night": "3",
        "machine hours of seven days": "0.0 of 10",
        "made by": "ann@lab",
    }
    assert pairs_of(page) == shown
    why = served_lab.SAID.format("its level moved")
    assert f"Nights wait: the testbed machine-a is not used: suspect: {why}" in words(page)
    store = series_store(lab)
    store.add(replace(store.load(served_lab.SERIES), name="capped", budget=500.0, threshold="2%"))
    store.set_state("capped", "paused", "holidays")
    found = client.get("/series/capped.json").json()
    page = client.get("/series/capped").text
    assert kind_of(page) == "series paused" and "holidays" in words(page)
    assert found["hours_allowed"] == 500.0
    assert pairs_of(page)["machine hours of seven days"] == "0.0 of 500"
    assert pairs_of(page)["threshold"] == "2%"


def test_a_cap_of_the_lab_below_the_budget_is_told(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series_pages, "show_series", lambda *a: {**show_series(*a), "hours_allowed": 4.0})
    told = pairs_of(client.get(PAGE).text)["machine hours of seven days"]
    assert told == "0.0 of 4, a cap of the lab; its budget is 10"


def test_what_is_offered_depends_on_the_state_and_the_role(
    client: httpx.Client, lab: Wiring, secrets: dict[Role, str], as_reader: dict[str, str]
) -> None:
    admin = {"Authorization": f"Bearer {secrets['admin']}"}
    add(lab, "offers", None)
    page = "/series/offers"

    def offered(headers: dict[str, str] | None = None) -> set[str]:
        text = client.get(page, headers=headers).text
        return {form.removeprefix(f"{page}/") for form in forms_of(text)}

    assert offered() == {"nights", "pause", "backfill"}
    assert offered(admin) == {"nights", "pause", "backfill", "removal"} and offered(as_reader) == set()
    assert client.post(f"{page}/pause", data={"reason": "new memory"}).headers["location"] == page
    assert (series_store(lab).load("offers").why, series_store(lab).load("offers").state) == (
        "new memory",
        "paused",
    )
    assert offered() == {"nights", "resume", "backfill"}
    assert client.post(f"{page}/resume", data={"next": "/series"}).headers["location"] == "/series"
    assert series_store(lab).load("offers").state == "active"
    assert client.post(f"{page}/removal").status_code == 403
    assert client.post(f"{page}/removal", headers=admin).headers["location"] == "/series"
    assert client.get(page).status_code == 404


def test_a_night_is_due_at_once_when_asked_for(client: httpx.Client, lab: Wiring) -> None:
    add(lab, "now", None)
    assert client.post("/series/now/nights").headers["location"] == "/series/now"
    made = series_store(lab).nights("now")[-1]
    assert (made.number, made.state, made.commit) == (2, "due", "")


def test_a_form_asks_for_what_was_filled_in(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def back_fill(own: object, *what: object) -> list[object]:
        asked.append(what)
        return []

    def add_series(own: object, what: RemoteSeries) -> dict[str, object]:
        asked.append(what)
        return {}

    monkeypatch.setattr(LocalOperations, "backfill", back_fill)
    for fields in ({"since": "", "every": "2"}, {"since": "v6.1", "every": ""}):
        sent = client.post(f"{PAGE}/backfill", data={**fields, "next": "/series"})
        assert sent.headers["location"] == "/series"
    assert asked == [(served_lab.SERIES, None, 2), (served_lab.SERIES, "v6.1", 1)]
    monkeypatch.setattr(LocalOperations, "add_foreign_series", add_series)
    fields = {
        "name": "new",
        "branch": "origin/master",
        "workload": "pipe-test",
        "cron": "0 2 * * *",
        "budget": "2.5",
    }
    sent = client.post("/series", data={**fields, "threshold": "", "testbed": ""})
    assert sent.headers["location"] == "/series/new"
    assert asked[2] == RemoteSeries.model_validate({**fields, "budget": 2.5})


def test_alerts_beyond_the_newest_are_counted(
    client: httpx.Client, lab: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "older ones" not in client.get(PAGE).text
    alerts = open_alerts(lab)
    for number in range(2):
        newer = replace(alerts.load(served_lab.ALERT), id=f"{number}" * 10, workload=f"w{number}")
        alerts.add(newer, HistoryEntry("perfbisect", "suspect"))
    monkeypatch.setattr(series_pages, "_ALERTS_SHOWN", 2)
    text = client.get(PAGE).text
    assert [row["Alert"] for row in rows_of(text, "Alerts")] == ["1" * 10, "0" * 10]
    assert f'<a href="/alerts?show=all&amp;series={served_lab.SERIES}">1 older ones</a>' in text
    monkeypatch.setattr(series_pages, "_ALERTS_SHOWN", 3)
    assert "older ones" not in client.get(PAGE).text, "all are shown"


def test_the_drawing_as_numbers_has_the_alerts(client: httpx.Client, lab: Wiring) -> None:
    add(lab, "marked", None, None)
    alerts = open_alerts(lab)
    moved = replace(alerts.load(served_lab.ALERT), id="d" * 10, series="marked", workload="marked")
    alerts.add(replace(moved, last_good=f"{1:040x}", first_bad=f"{2:040x}"), HistoryEntry("p", "suspect"))
    text = client.get("/series/marked").text.partition('<script type="application/json" id="data">')[2]
    found = json.loads(text.partition("</script>")[0])
    assert found["alerts"] == [[1.79e9, "d" * 10]] and found["level"] == [1.0, 1.0]
