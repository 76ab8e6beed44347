"""What the first page counts, and what it leaves to the pages of lists."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import httpx

from bisector.app.alerts.alert_changes import AlertChange, set_alert
from bisector.app.alerts.alert_context import open_alerts
from bisector.app.wiring import Wiring
from bisector.engine.state_lock import lock
from bisector.model.alerts import HistoryEntry
from tests.support.report_material import sixty_boots
from tests.support.servers import served_lab
from tests.support.servers.web import make_tokens, serving, wiring_in

UNSERVED = "Nobody executes what is queued"


def section(client: httpx.Client, name: str) -> list[str]:
    """Return the bisections that a section of the page lists."""
    text = client.get("/").text.partition(f'id="{name}-heading"')[2].partition("</section>")[0]
    return re.findall(r'<a href="/bisections/([\w-]+)"', text)


def tiles(client: httpx.Client) -> dict[str, str]:
    found = re.findall(r'<li><a href="[^"]+"><strong>([^<]+)</strong> ([^<]+)</a>', client.get("/").text)
    return {text: number for number, text in found}


def test_what_runs_and_what_waits_are_told_apart(client: httpx.Client, lab: Wiring) -> None:
    with lock(lab.settings.state_dir, "running-1"):
        found = client.get("/overview.json").json()
        assert (found["running"], found["waiting"]) == (["running-1"], ["queued-1"])
        assert (tiles(client)["running"], tiles(client)["waiting"]) == ("1", "1")
        assert found["executor"] and section(client, "running") == ["running-1"]
        assert section(client, "queue") == ["queued-1"] and UNSERVED not in client.get("/").text
    found = client.get("/overview.json").json()
    assert (found["running"], found["waiting"]) == ([], ["running-1", "queued-1"]), "its process was killed"
    assert section(client, "running") == [] and section(client, "queue") == ["running-1", "queued-1"]
    assert UNSERVED in client.get("/").text, "and nobody else takes them"
    assert [row["id"] for row in found["ended"]] == ["done-1"] == section(client, "ended")


def test_what_has_failed_is_no_secret(client: httpx.Client, lab: Wiring) -> None:
    served_lab.store(lab, sixty_boots(boots=6), "failed", "{}", 3, name="broken-1")
    assert "broken-1" in section(client, "ended")


def test_where_nothing_is_queued_nobody_has_to_execute_it(tmp_path: Path) -> None:
    wiring = wiring_in(tmp_path)
    headers = {"Authorization": f"Bearer {make_tokens(wiring)['read']}"}
    with serving(wiring) as url:
        text = httpx.get(url, headers=headers, timeout=60).text
    assert "Nothing waits." in text and UNSERVED not in text


def test_only_testbeds_out_of_use_are_listed(client: httpx.Client, lab: Wiring) -> None:
    assert [row["name"] for row in client.get("/overview.json").json()["testbeds"]] == ["machine-a"]
    assert tiles(client)["testbeds in use"] == "2 of 3"
    text = client.get("/").text.partition('id="sick-heading"')[2].partition("</section>")[0]
    assert 'href="/testbeds/machine-a"' in text
    assert 'its level moved <span class="quiet">(a health check)</span>' in text
    lab.coordinator.set_testbed("machine-b", "maintenance", "new memory", "ann@lab")
    names = [row["name"] for row in client.get("/overview.json").json()["testbeds"]]
    assert names == ["machine-a", "machine-b"] and tiles(client)["testbeds in use"] == "1 of 3"
    lab.coordinator.set_testbed("machine-b", "good", "", "ann@lab")


def test_ten_open_alerts_and_ten_ended_searches_are_shown_of_many(client: httpx.Client, lab: Wiring) -> None:
    assert "more</a>" not in client.get("/").text
    alerts = open_alerts(lab)
    alert = alerts.load(served_lab.ALERT)
    for number in range(12):
        more = replace(alert, id=f"{number:010x}", workload=f"w{number}", first_bad=f"{number:040x}")
        alerts.add(more, HistoryEntry("perfbisect", "suspect"))
    set_alert(alerts, f"{11:010x}", AlertChange(state="invalid"), "ann")
    for number in range(10):
        served_lab.store(lab, sixty_boots(boots=6), "done", "{}", number + 10, name=f"d{number}")
    found = client.get("/overview.json").json()
    assert len(found["alerts"]) == 10 and f"{11:010x}" not in [row["id"] for row in found["alerts"]]
    assert [row["id"] for row in found["ended"]] == [f"d{number}" for number in reversed(range(10))]
    assert tiles(client)["open alerts"] == "12"
    assert '<a href="/alerts">2 more</a>' in client.get("/").text
