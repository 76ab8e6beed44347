"""Which alerts the list shows, and what forms may leave as it is."""

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
from bisector.model.series import Night
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


def test_an_empty_field_changes_nothing(client: httpx.Client, lab: Wiring) -> None:
    def sent(**fields: str) -> tuple[str | None, str]:
        data = {"state": "", "assignee": "", "note": "", **fields}
        assert client.post(PAGE, data=data).status_code == 303
        found = open_alerts(lab).load(served_lab.ALERT)
        return found.triage, found.assignee

    assert sent(state="acknowledged", assignee="ann") == ("acknowledged", "ann")
    assert sent(note="looks real") == ("acknowledged", "ann")
    assert sent(unassign="1") == ("acknowledged", "")
