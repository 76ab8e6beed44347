"""Which alerts the list shows, what a page says of one, and what forms may leave as it is."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import httpx
import pytest

from bisector.app.alerts.alert_changes import AlertChange, set_alert
from bisector.app.alerts.alert_context import open_alerts
from bisector.app.series.series_store import series_store
from bisector.app.wiring import Wiring
from bisector.interfaces.web.pages import alert_pages
from bisector.model.alerts import TRIAGES, HistoryEntry
from bisector.model.decisions import Interval
from bisector.model.series import Night
from bisector.report import phrases
from tests.support.pages.shown_pages import forms_of, kind_of, lead_of, pairs_of, rows_of
from tests.support.servers import served_lab

OTHERS = tuple(f"{number:010x}" for number in range(5))
PAGE = f"/alerts/{served_lab.ALERT}"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Wiring:
    """With five more alerts of series that are gone, the last of which is invalid."""
    wiring = served_lab.make(tmp_path_factory.mktemp("lab"), boots=6)
    alerts = open_alerts(wiring)
    for number, name in enumerate(OTHERS):
        alert = replace(alerts.load(served_lab.ALERT), id=name, series=f"gone-{number % 2}", workload=name)
        alerts.add(alert, HistoryEntry("perfbisect", "suspect"))
    set_alert(alerts, OTHERS[-1], AlertChange(state="invalid"), "ann")
    series_store(wiring).add_night(Night(served_lab.SERIES, 41, 1.8e9, 41.0))  # which has no level yet
    return wiring


def listed(client: httpx.Client, query: str = "") -> list[str]:
    return [row["id"] for row in client.get(f"/alerts.json{query}").json()]


def test_open_ones_are_listed_and_all_when_asked_for(client: httpx.Client) -> None:
    assert sorted(listed(client)) == sorted([*OTHERS[:-1], served_lab.ALERT])
    assert sorted(listed(client, "?show=all")) == sorted([*OTHERS, served_lab.ALERT])
    assert sorted(listed(client, "?show=all&series=gone-0")) == sorted(OTHERS[::2])


def test_a_part_leads_to_the_next_until_the_last(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alert_pages, "ROWS_PER_PART", 3)
    assert "6 in all." in client.get("/alerts?show=all").text
    seen, query = list[str](), "?show=all"
    while query:
        seen += listed(client, query)
        following = re.findall(r'rel="next" href="/alerts(\?[^"]*)"', client.get(f"/alerts{query}").text)
        query = following[0].replace("&amp;", "&") if following else ""
    assert len(seen) == 6 and set(seen) == {*OTHERS, served_lab.ALERT}


def test_csv_has_the_limits_of_the_effect_as_columns(client: httpx.Client) -> None:
    row, *_ = csv.DictReader(io.StringIO(client.get("/alerts.csv").text))
    assert (row["low"], row["estimate"], row["high"]) == ("0.03", "0.05", "0.07") and "effect" not in row


def test_an_alert_has_its_interval_and_the_nights_of_a_series_that_is_there(client: httpx.Client) -> None:
    text = client.get(PAGE).text
    assert "+5.0% worse (95% interval +3.0% .. +7.0%)" in text
    assert "Nights of the series" in text and 'class="band"' in text
    gone = client.get(f"/alerts/{OTHERS[0]}")
    assert gone.status_code == 200 and "Nights of the series" not in gone.text
    states = text.partition('name="state"')[2].partition("</select>")[0]
    assert re.findall('value="([a-z]*)"', states) == ["", *(one for one in TRIAGES if one != "duplicate")]


def with_a_culprit(lab: Wiring) -> str:
    """Add an alert of which all is known, and one that shares its cause; return its id."""
    alerts = open_alerts(lab)
    known = replace(
        alerts.load(served_lab.ALERT),
        id="c" * 10,
        group="c" * 10,
        series="found",
        workload="w-found",
        tip="e" * 40,
        finding="culprit",
        triage="acknowledged",
        why="",
        bisection="done-1",
        culprits=("d" * 40,),
        subject="sched: wait",
        back_since="b" * 40,
        assignee="ann",
    )
    alerts.add(known, HistoryEntry("perfbisect", "suspect", "night 7"))
    other = replace(known, id="e" * 10, series="found-2", triage="duplicate", duplicate_of=known.id)
    alerts.add(other, HistoryEntry("bob", "duplicate", "alike"))
    return known.id


def test_a_row_says_what_is_known_and_who_looks_after_it(client: httpx.Client, lab: Wiring) -> None:
    name = with_a_culprit(lab)
    created = phrases.date(open_alerts(lab).load(name).created)
    (row,) = rows_of(client.get("/alerts?series=found").text, "Alerts")
    assert row == {
        "Alert": name,
        "State": "acknowledged",
        "Change": "real +5.0% worse",
        "Series": "found",
        "Result": f"{'d' * 12} sched: wait",
        "Assignee": "ann",
        "Since": created,
    }
    (row,) = rows_of(client.get("/alerts?series=found-2&show=all").text, "Alerts")
    assert (row["State"], row["Result"]) == ("duplicate", f"duplicate of {name}")


def test_the_page_of_an_alert_says_all_that_is_known_of_it(client: httpx.Client, lab: Wiring) -> None:
    page = client.get(f"/alerts/{'c' * 10}").text
    assert kind_of(page) == f"alert {'c' * 10} acknowledged"
    assert lead_of(page) == f"{'d' * 12} sched: wait", "nobody has said why"
    assert pairs_of(page) == {
        "series": "found",
        "measured": "w-found (real) on machine-a",
        "change": "+5.0% worse (95% interval +3.0% .. +7.0%)",
        "last good": f"{29:040x}",
        "first bad": f"{30:040x}",
        "tip": "e" * 40,
        "found out": "culprit",
        "bisection": "done-1",
        "culprit": f"{'d' * 40} sched: wait",
        "back since": f"{'b' * 40} at the latest",
        "same cause": "e" * 10,
        "assigned to": "ann",
    }
    (entry,) = rows_of(page, "History")
    assert [entry[head] for head in ("Who", "What", "Why")] == ["perfbisect", "suspect", "night 7"]
    (row,) = csv.DictReader(io.StringIO(client.get(f"/alerts/{'c' * 10}.csv").text))
    assert (row["who"], row["what"], row["why"]) == ("perfbisect", "suspect", "night 7")
    other = client.get(f"/alerts/{'e' * 10}").text
    assert pairs_of(other)["duplicate of"] == pairs_of(other)["same cause"] == "c" * 10
    suspect = client.get(f"/alerts/{OTHERS[0]}").text
    assert lead_of(suspect) == served_lab.SAID.format("why")
    assert pairs_of(suspect)["found out"] == f"suspect: {lead_of(suspect)}"
    assert pairs_of(suspect)["assigned to"] == "nobody"
    assert not {"tip", "bisection", "culprit", "back since", "duplicate of"} & pairs_of(suspect).keys()


def test_what_is_better_is_not_called_bad(client: httpx.Client, lab: Wiring) -> None:
    alert = replace(
        open_alerts(lab).load(served_lab.ALERT),
        id="9" * 10,
        workload="better",
        direction="improvement",
        effect=Interval(-0.07, -0.05, -0.03),
    )
    open_alerts(lab).add(alert, HistoryEntry("perfbisect", "suspect"))
    shown = pairs_of(client.get(f"/alerts/{alert.id}").text)
    assert shown["change"] == "-5.0% better (95% interval -7.0% .. -3.0%)"
    assert (shown["last worse"], shown["first better"]) == (alert.last_good, alert.first_bad)


def test_the_nights_after_a_move_have_another_colour(client: httpx.Client) -> None:
    text = client.get(PAGE).text
    assert [text.count(f'class="level {colour}"') for colour in ("old", "new")] == [29, 11]


def test_who_may_only_look_is_offered_no_form(client: httpx.Client, as_reader: dict[str, str]) -> None:
    assert forms_of(client.get(PAGE).text) == {PAGE}
    assert forms_of(client.get(PAGE, headers=as_reader).text) == set()


def test_the_list_keeps_what_was_asked_for(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_pages, "ROWS_PER_PART", 1)
    asked = "show=all&amp;series=gone-0"
    text = client.get("/alerts?show=all&series=gone-0").text
    assert 'name="series" value="gone-0"' in text and '<option value="all" selected>' in text
    assert "The newest" not in text
    ((link,),) = ([found] for found in re.findall(r'rel="next" href="/alerts\?([^"]*)"', text))
    assert link.startswith(f"{asked}&amp;after=")
    text = client.get(f"/alerts?{link.replace('&amp;', '&')}").text
    assert f'<a href="/alerts?{asked}">The newest</a>' in text
    assert "No open alerts." in client.get("/alerts?series=none").text
    assert "No alerts." in client.get("/alerts?series=none&show=all").text


def test_a_form_leads_to_the_page_of_the_alert(client: httpx.Client) -> None:
    sent = {"note": "seen", "next": "/alerts?show=all"}
    assert client.post(PAGE, data=sent).headers["location"] == "/alerts?show=all"
    short = f"/alerts/{served_lab.ALERT[:6]}"
    assert client.post(short, data={"note": "again"}).headers["location"] == PAGE


def test_an_empty_field_changes_nothing(client: httpx.Client, lab: Wiring) -> None:
    def sent(**fields: str) -> tuple[str | None, str]:
        data = {"state": "", "assignee": "", "note": "", **fields}
        assert client.post(PAGE, data=data).status_code == 303
        found = open_alerts(lab).load(served_lab.ALERT)
        return found.triage, found.assignee

    assert sent(state="acknowledged", assignee="ann") == ("acknowledged", "ann")
    assert sent(note="looks real") == ("acknowledged", "ann")
    both = client.post(PAGE, data={"assignee": "bob", "unassign": "1"})
    assert both.status_code == 400 and "exclude each other" in both.json()["detail"]
    assert open_alerts(lab).load(served_lab.ALERT).assignee == "ann"
    assert sent(unassign="1") == ("acknowledged", "")
