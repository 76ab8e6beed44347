"""What the page of a series says of its nights, and which of them it lists."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from typing import get_args

import httpx
import pytest

from bisector.app.alerts.alert_context import open_alerts
from bisector.app.series.series_store import series_store
from bisector.app.wiring import Wiring
from bisector.interfaces.web.pages import series_pages
from bisector.model.alerts import HistoryEntry
from bisector.model.goal import Threshold
from bisector.model.series import Night, NightVerdict, Point, VerdictStatus
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
