"""Which alerts the API lists, and what is written down of who says what of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import httpx
import pytest

from bisector.app.alerts.alert_context import open_alerts
from bisector.app.wiring import Wiring
from bisector.model.alerts import HistoryEntry
from tests.support.series.alert_lab import found

Written = Callable[[], tuple[str, str, str, str]]


@pytest.fixture
def ids(served: Wiring) -> list[str]:
    """Five alerts, the oldest first: of two series and workloads, the last two closed."""
    alerts = open_alerts(served)
    made = []
    for number in range(5):
        alert = replace(
            found(number, number + 1),
            id=f"{number}" * 10,
            series=f"s{number % 2}",
            workload=f"w{number // 3}",
            finding="rejected" if number == 3 else "suspect",
            triage="invalid" if number == 4 else None,
        )
        made.append(alerts.add(alert, HistoryEntry("perfbisect", "suspect")).id)
    return made


def test_alerts_are_those_that_are_asked_for(admin: httpx.Client, ids: list[str]) -> None:
    def listed(**asked: str) -> tuple[list[int], int]:
        answer = admin.get("/alerts", params=asked).json()
        return [ids.index(row["id"]) for row in answer["alerts"]], answer["count"]

    assert listed() == ([4, 3, 2, 1, 0], 5)
    assert listed(open="true") == ([2, 1, 0], 3)
    assert listed(open="false") == ([4, 3], 2)
    assert listed(series="s1") == ([3, 1], 2)
    assert listed(workload="w1") == ([4, 3], 2)
    assert listed(state="rejected,invalid") == ([4, 3], 2)
    assert listed(limit="2") == ([4, 3], 5)
    assert listed(after=ids[3], limit="2") == ([2, 1], 5)
    assert admin.get("/alerts", params={"state": "open"}).status_code == 400


def test_who_says_what_of_an_alert_is_written_down(
    admin: httpx.Client, served: Wiring, ids: list[str], written: Written
) -> None:
    body = {"state": "invalid", "note": "the disk was full", "assignee": "ann"}
    made = admin.post(f"/alerts/{ids[0][:5]}", json=body).json()
    assert (made["id"], made["state"], made["assignee"]) == (ids[0], "invalid", "ann")
    assert written() == ("admin", "alert", ids[0], "invalid the disk was full")
    told = [(one.who, one.what, one.why) for one in open_alerts(served).history(ids[0])[1:]]
    assert told == [("admin", "invalid", "the disk was full"), ("admin", "assigned to ann", "")]
    assert admin.post(f"/alerts/{ids[1]}", json={"duplicate_of": ids[0]}).status_code == 200
    assert written() == ("admin", "alert", ids[1], "duplicate")
    before = written()
    assert admin.post(f"/alerts/{ids[2]}", json={"state": "fixed", "revision": 7}).status_code == 400
    assert admin.post(f"/alerts/{ids[2]}", json={}).status_code == 400
    assert written() == before
