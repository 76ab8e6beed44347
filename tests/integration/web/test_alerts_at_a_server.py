"""`perfbisect alert` prints the same at a server as on its machine: `alert_routes`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import unescape

import httpx
import pytest

from bisector.app.alerts import alert_range
from bisector.app.alerts.alert_context import open_alerts
from bisector.app.upkeep import tokens
from bisector.app.wiring import Wiring
from bisector.model.alerts import HistoryEntry
from bisector.schemas.settings import load_settings
from tests.support.series.alert_lab import found
from tests.support.servers.command_client import Client

ALERT_LINES: Sequence[Sequence[str]] = (
    ["list"],
    ["list", "--json"],
    ["list", "--all", "--limit", "1"],
    ["list", "--all", "--after", "{second}"],
    ["list", "--state", "suspect", "--series", "nightly"],
    ["list", "--state", "nonsense"],
    ["list", "--after", "nonsense"],
    ["show", "{first}"],
    ["show", "{first}", "--json"],
    ["set", "{first}", "--state", "fixed"],
    ["set", "{first}", "--note", "x" * 2001],
    ["set", "{first}"],
    ["set", "{first}", "--duplicate-of", "{first}"],
)


def test_alerts_print_the_same_and_are_changed_by_who_may(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    alerts = open_alerts(Wiring(load_settings()))
    ids = {
        name: alerts.add(replace(found(n, n + 1), id=f"{n}abc"), HistoryEntry("perfbisect", "suspect")).id
        for n, name in enumerate(("first", "second"))
    }
    for line in ALERT_LINES:
        arguments = ["alert", *(word.format(**ids) for word in line)]
        assert client.there(*arguments) == client.here(*arguments), arguments
    line = ["alert", "set", ids["first"], "--state", "acknowledged", "--assign", "ann", "--note", "seen"]
    assert client.there(*line) == (0, "", f"{ids['first']} is acknowledged, assigned to ann\n")
    entries = alerts.history(ids["first"])[1:]
    assert [(e.who, e.what, e.why) for e in entries] == [
        ("operate", "acknowledged", "seen"),
        ("operate", "assigned to ann", ""),
    ]
    (change,) = tokens.access_of(Wiring(load_settings())).changes(1)
    assert (change.who, change.what, change.target) == ("operate", "alert", ids["first"])
    where = f"{client.url}/api/v1/alerts/{ids['first']}"
    headers = {"Authorization": f"Bearer {client.secrets['operate']}"}
    old = {"state": "invalid", "revision": 1}
    problem = httpx.post(where, json=old, headers=headers, timeout=60)
    assert problem.status_code == 400 and "was changed meanwhile" in problem.json()["detail"]
    assert httpx.post(where, json={"state": "culprit"}, headers=headers, timeout=60).status_code == 400
    monkeypatch.setenv("PERFBISECT_TOKEN", client.secrets["read"])
    assert client.there("alert", "list")[0] == 0
    code, _, err = client.there("alert", "set", ids["first"], "--note", "x")
    assert code == 1 and "this needs 'operate'" in err
    assert alerts.load(ids["first"]).state == "acknowledged"


def test_the_page_of_an_alert_names_its_commits_and_counts_its_range(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    subjects = {"last_good": "sched: <b>go</b>", "first_bad": "sched: wait", "tip": "Linux 6.2"}
    described = {"commits": 2, "subjects": subjects}
    monkeypatch.setattr(alert_range, "describe_range", lambda *_: described)
    alert = replace(found(1, 2), id="a1", tip="e" * 40)
    open_alerts(Wiring(load_settings())).add(alert, HistoryEntry("perfbisect", "suspect"))
    headers = {"Authorization": f"Bearer {client.secrets['read']}", "Accept": "text/html"}
    page = httpx.get(f"{client.url}/alerts/a1", headers=headers, timeout=60).text
    for sha, subject in zip((alert.last_good, alert.first_bad, alert.tip), subjects.values(), strict=True):
        assert f"<code>{sha}</code> {subject}" in unescape(page)
    assert "2 commits after 'last good', up to 'first bad'" in unescape(page)
    assert "<b>go" not in page
    described["commits"] = None
    assert "<dt>range</dt>" not in httpx.get(f"{client.url}/alerts/a1", headers=headers, timeout=60).text
